"""Telling people, through Apprise, about what they have to know."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from shared.claims.store import AlertStore
from shared.config import Settings
from shared.errors import StoreUnavailableError
from shared.logs import get_logger

log = get_logger()

SEND_TIMEOUT = timedelta(seconds=10)
HOST_ALERT_EVERY = timedelta(days=1)

Send = Callable[[str, str], bool]
"""Send a title and a body to people; False when nobody was reached."""


class Alerts(Protocol):
    """What worker and scheduler tell people. Returns whether anybody was reached; never raises, never blocks long."""

    def job_failed(self, job_id: str, *, event: str, error: str | None) -> bool:
        """Tell of an ERROR event: Sume could not render the job."""
        ...

    def job_dead(self, job_id: str, *, reason: str, error: str) -> bool:
        """Tell of a job that was given up."""
        ...

    def host_not_allowed(self, host: str, *, job_id: str) -> bool:
        """Tell, once a day for each host, that jobs wait for it to be listed."""
        ...


class AppriseAlerts:
    """Alerts to ALERT_URLS; without any URL nobody is reached, and the log line is all there is."""

    def __init__(self, send: Send, store: AlertStore) -> None:
        self._send = send
        self._store = store

    def job_failed(self, job_id: str, *, event: str, error: str | None) -> bool:
        """See Alerts.job_failed."""
        return self._deliver(
            "job_failed",
            job_id,
            f"Sume: {event} for {job_id}",
            f"{error or 'Sume gave no error text.'}\nSee: sume-jobs show {job_id}",
        )

    def job_dead(self, job_id: str, *, reason: str, error: str) -> bool:
        """See Alerts.job_dead."""
        return self._deliver(
            "job_dead",
            job_id,
            f"Job {job_id} is dead: {reason}",
            f"{error}\nSee: sume-jobs show {job_id}\nAfter mending the cause: sume-jobs requeue {job_id}",
        )

    def host_not_allowed(self, host: str, *, job_id: str) -> bool:
        """See Alerts.host_not_allowed."""
        try:
            held_back = self._store.may_alert("host_not_allowed", host, every=HOST_ALERT_EVERY)
        except StoreUnavailableError as error:
            log.warning("alert.failed", kind="host_not_allowed", host=host, error=str(error))
            return False
        if held_back is None:
            return False
        return self._deliver(
            "host_not_allowed",
            job_id,
            f"Jobs wait for the artifact host {host}",
            f"{host} is not in ARTIFACT_HOSTS. If it is Sume's, add it and restart the workers: "
            f"the jobs then finish by themselves. First seen with {job_id}.",
        )

    def _deliver(self, kind: str, job_id: str, title: str, body: str) -> bool:
        try:
            reached = self._send(title, body)
        except Exception as error:  # noqa: BLE001 - a plugin of Apprise may raise anything; no alert may stop a job
            log.warning("alert.failed", kind=kind, job_id=job_id, error=type(error).__name__)
            return False
        log.info("alert.sent" if reached else "alert.undelivered", kind=kind, job_id=job_id)
        return reached


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
