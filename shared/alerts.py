"""Telling people, through Apprise, about what they have to know."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Protocol

from shared.claims.watch import AlertStore
from shared.config import Settings
from shared.errors import StoreUnavailableError
from shared.logs import get_logger

log = get_logger()

SEND_TIMEOUT = timedelta(seconds=5)
"""For one service to take an alert."""
SEND_WITHIN = timedelta(seconds=7)
"""For all of them; nobody waits longer, whatever a plugin of Apprise does."""
MOST_HANGING = 4
"""So many alerts may still be under way after that; the next ones are then not tried."""
ALERT_EVERY = timedelta(minutes=5)
LASTING_ALERT_EVERY = timedelta(days=1)

COUNTED: Mapping[str, str] = {
    "job_failed": "sume-jobs list --status ERROR",
    "job_dead": "sume-jobs list --state dead",
    "host_not_allowed": "sume-jobs list --state claimed",
    "host_failing": "sume-jobs stats",
}
"""Kinds whose every alert is about something else, so that those held back are counted and told; with what to run."""

Send = Callable[[str, str], bool]
"""Send a title and a body to people; False when nobody was reached."""


class Alerts(Protocol):
    """What worker and scheduler tell people. Returns whether anybody was reached; never raises, never blocks long.

    One alert of a kind goes out in five minutes, of all processes together. What is held back reached nobody; the
    next alert of its kind says how many those are.
    """

    def job_failed(self, job_id: str, *, event: str, error: str | None) -> bool:
        """Tell of an ERROR event: Sume could not render the job."""
        ...

    def job_dead(self, job_id: str, *, reason: str, error: str) -> bool:
        """Tell of a job that was given up."""
        ...

    def host_not_allowed(self, host: str, *, job_id: str) -> bool:
        """Tell, once a day for each host, that jobs wait for it to be listed."""
        ...

    def host_failing(self, host: str, *, error: str) -> bool:
        """Tell that the circuit of an artifact host opened; called once an opening."""
        ...

    def storage_unusable(self, *, reason: str, error: str) -> bool:
        """Tell, once a day for each reason, that downloads wait for the storage."""
        ...


class AppriseAlerts:
    """Alerts to ALERT_URLS; without any URL nobody is reached, and the log line is all there is."""

    def __init__(self, send: Send, store: AlertStore, *, within: timedelta = SEND_WITHIN) -> None:
        self._send = send
        self._store = store
        self._within = within
        self._free = threading.Semaphore(MOST_HANGING)

    def job_failed(self, job_id: str, *, event: str, error: str | None) -> bool:
        """See Alerts.job_failed."""
        return self.tell(
            "job_failed",
            f"Sume: {event} for {job_id}",
            f"{error or 'Sume gave no error text.'}\nSee: sume-jobs show {job_id}",
        )

    def job_dead(self, job_id: str, *, reason: str, error: str) -> bool:
        """See Alerts.job_dead."""
        return self.tell(
            "job_dead",
            f"Job {job_id} is dead: {reason}",
            f"{error}\nSee: sume-jobs show {job_id}\nAfter mending the cause: sume-jobs requeue {job_id}",
        )

    def host_not_allowed(self, host: str, *, job_id: str) -> bool:
        """See Alerts.host_not_allowed."""
        return self.tell_daily(
            "host_not_allowed",
            host,
            f"Jobs wait for the artifact host {host}",
            f"{host} is not in ARTIFACT_HOSTS. If it is Sume's, add it and restart the workers: "
            f"the jobs then finish by themselves. First seen with {job_id}.",
        )

    def host_failing(self, host: str, *, error: str) -> bool:
        """See Alerts.host_failing."""
        return self.tell(
            "host_failing",
            f"The artifact host {host} fails for every job",
            f"{error}\nIts jobs wait without using up attempts, and one at a time tries it again; they finish by "
            "themselves when it is back.\nSee: sume-jobs stats",
        )

    def storage_unusable(self, *, reason: str, error: str) -> bool:
        """See Alerts.storage_unusable."""
        return self.tell_daily(
            reason,
            "storage",
            f"Downloads wait for the storage: {reason}",
            f"{error}\nNo attempt is used up; the jobs finish by themselves once that is mended.\nSee: sume-jobs check",
        )

    def tell(self, kind: str, title: str, body: str) -> bool:
        """Send an alert, unless one of its kind was sent within ALERT_EVERY."""
        held_back = self._gate(kind, "", every=ALERT_EVERY)
        if held_back is None:
            return False
        if held_back and kind in COUNTED:
            body = f"{body}\n{held_back} more of this kind were held back since the last alert: {COUNTED[kind]}"
        return self._deliver(kind, title, body)

    def tell_daily(self, kind: str, subject: str, title: str, body: str) -> bool:
        """Send an alert about something that lasts, at most once a day for each subject."""
        if self._gate(kind, f"daily {subject}", every=LASTING_ALERT_EVERY) is None:
            return False
        return self.tell(kind, title, body)

    def tell_held_back(self) -> None:
        """Tell of what was held back and followed by no other alert; raises StoreUnavailableError."""
        for held in self._store.take_held_back(list(COUNTED), every=ALERT_EVERY):
            title = f"{held.count} more alerts of kind {held.kind}"
            self._deliver(held.kind, title, f"They were held back after the last one.\nSee: {COUNTED[held.kind]}")

    def _gate(self, kind: str, subject: str, *, every: timedelta) -> int | None:
        """Return how many were held back before this one; None when this one is."""
        try:
            return self._store.may_alert(kind, subject, every=every)
        except StoreUnavailableError as error:
            log.warning("alert.failed", kind=kind, error=str(error))
            return None

    def _deliver(self, kind: str, title: str, body: str) -> bool:
        outcome = self._send_within(title, body)
        if isinstance(outcome, str):
            log.warning("alert.failed", kind=kind, title=title, error=outcome)
            return False
        log.info("alert.sent" if outcome else "alert.undelivered", kind=kind, title=title)
        return outcome

    def _send_within(self, title: str, body: str) -> bool | str:
        """Send from a thread of its own; return whether anybody was reached, or what went wrong.

        The caller's thread only waits, so that RQ's timeout, an exception that a signal raises there once, is not
        swallowed with what a plugin raises.
        """
        if not self._free.acquire(blocking=False):
            return "earlier alerts are still under way"
        outcome: SimpleQueue[bool | str] = SimpleQueue()

        def send() -> None:
            try:
                outcome.put(self._send(title, body))
            except Exception as error:  # noqa: BLE001 - a plugin of Apprise may raise anything
                outcome.put(type(error).__name__)
            finally:
                self._free.release()

        threading.Thread(target=send, name="alert", daemon=True).start()
        try:
            return outcome.get(timeout=self._within.total_seconds())
        except Empty:
            return f"not sent within {self._within.total_seconds():g} s"


def apprise_sender(urls: Sequence[str]) -> Send:
    """Return a Send that reaches every URL in turn; reached means one of them took it."""
    if not urls:
        return lambda _title, _body: False
    import apprise  # noqa: PLC0415 - 0.2 s to import, and most processes name no alert URL

    people = apprise.Apprise()
    for url in urls:
        people.add(url)

    def send(title: str, body: str) -> bool:
        outcome = people.notify(body=body, title=title, timeout=SEND_TIMEOUT.total_seconds())
        return any(bool(service) for service in outcome)

    return send


def open_alerts(settings: Settings, store: AlertStore) -> AppriseAlerts:
    """Return the alerts of ALERT_URLS."""
    return AppriseAlerts(apprise_sender(settings.alert_urls), store)
