"""The watch: what no job tells of is noticed and told to people."""

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from shared.claims.quarantine import QuarantineEntry, QuarantineStore
from shared.claims.watch import IntakeFacts, WatchStore
from shared.errors import QueueUnavailableError

SILENCE = timedelta(minutes=2)
NOTHING_ACCEPTED = timedelta(minutes=10)
NO_DELIVERY = ("method_not_allowed",)
"""Refusals of what is no delivery at all: somebody looked at the URL."""
SLOW_WITHIN = timedelta(minutes=10)
SLOW_LEAST = 10
SLOW_SHARE = 0.2
QUARANTINE_BATCH = 1000
SHOWN = 5


class WatchmanStore(WatchStore, QuarantineStore, Protocol):
    """The parts of the store that are watched."""


class Workers(Protocol):
    """The part of the queue that is watched."""

    def workers(self) -> int:
        """See Queue.workers."""
        ...


class Telling(Protocol):
    """The part of the alerts that the watch uses."""

    def tell(self, kind: str, title: str, body: str) -> bool:
        """See AppriseAlerts.tell."""
        ...

    def tell_held_back(self) -> None:
        """See AppriseAlerts.tell_held_back."""
        ...


class Watchman:
    """Looks at the whole; how often an alert may repeat is the alerts' to decide."""

    def __init__(
        self,
        store: WatchmanStore,
        queue: Workers,
        alerts: Telling,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._queue = queue
        self._alerts = alerts
        self._monotonic = monotonic
        self._since = monotonic()
        self._counted: deque[tuple[float, IntakeFacts]] = deque()
        """The counts of the last SLOW_WITHIN, and one older, with their times."""

    def watch(self, _stop: threading.Event) -> None:
        """Look at everything once; raises StoreUnavailableError."""
        facts = self._store.intake_facts()
        self._look_at_refusals(facts)
        self._look_at_redeliveries(facts)
        self._look_at_quarantine()
        self._look_at_workers()
        self._alerts.tell_held_back()

    def _look_at_refusals(self, facts: IntakeFacts) -> None:
        if facts.accepted_ago is not None and facts.accepted_ago < NOTHING_ACCEPTED:
            return
        refused = [r for r in facts.refusals if r.ago < NOTHING_ACCEPTED and r.code not in NO_DELIVERY]
        if not refused:
            return
        since = "ever" if facts.accepted_ago is None else f"for {facts.accepted_ago // timedelta(minutes=1)} minutes"
        lines = [f"{r.code}: {r.count} in all; headers of the last: {r.headers or 'none'}" for r in refused]
        self._alerts.tell(
            "deliveries_refused",
            f"Deliveries are refused, and none was accepted {since}",
            "\n".join(lines) + "\nCompare the signing secret and the names of its headers (SUME_SIGNATURE_HEADER, "
            "SUME_TIMESTAMP_HEADER) with Sume's dashboard. See: sume-jobs stats",
        )

    def _look_at_redeliveries(self, facts: IntakeFacts) -> None:
        now = self._monotonic()
        self._counted.append((now, facts))
        while len(self._counted) > 1 and self._counted[1][0] <= now - SLOW_WITHIN.total_seconds():
            self._counted.popleft()
        before = self._counted[0][1]
        accepted, again = facts.accepted - before.accepted, facts.redelivered - before.redelivered
        if again >= SLOW_LEAST and again >= SLOW_SHARE * accepted:
            self._alerts.tell(
                "redelivered",
                f"{again} of the last {accepted} deliveries were repeats",
                "Sume repeats a delivery whose answer it did not get within 10 seconds: the receiver, the proxy before "
                "it or the network between is slow or cut off. Nothing is handled twice.\n"
                "See: sume-jobs list --redelivered",
            )

    def _look_at_quarantine(self) -> None:
        bodies = self._store.untold_quarantine(limit=QUARANTINE_BATCH)
        if bodies and self._alerts.tell("quarantined", quarantine_title(bodies), quarantine_text(bodies)):
            self._store.mark_quarantine_told([body.id for body in bodies])

    def _look_at_workers(self) -> None:
        if self._monotonic() - self._since < SILENCE.total_seconds():
            return  # all were started together: they had no time to be seen
        silent = self._store.silent_for("worker")
        if (silent is not None and silent < SILENCE) or self._plain_workers():
            return
        for_how_long = "ever" if silent is None else f"for {silent // timedelta(minutes=1)} minutes"
        self._alerts.tell(
            "workers_silent",
            f"No worker was seen {for_how_long}",
            "Deliveries are still stored, but nothing is downloaded or handled. Start: sume-jobs worker\n"
            "What waits: sume-jobs stats",
        )

    def _plain_workers(self) -> bool:
        """Whether Redis knows workers: those of plain RQ are seen there alone."""
        try:
            return self._queue.workers() > 0
        except QueueUnavailableError:
            return False


def quarantine_title(bodies: list[QuarantineEntry]) -> str:
    """Return how many bodies there are to tell of."""
    if len(bodies) == 1:
        return "A signed delivery was not understood and is in quarantine"
    return f"{len(bodies)} signed deliveries were not understood and are in quarantine"


def quarantine_text(bodies: list[QuarantineEntry]) -> str:
    """Return the facts about the first of them, and what to run."""
    lines = [f"{body.id}: {body.reason}, {body.bytes} bytes, came {body.count} times" for body in bodies[:SHOWN]]
    lines += [f"and {len(bodies) - SHOWN} more: sume-jobs quarantine list"] if len(bodies) > SHOWN else []
    return "\n".join(
        [*lines, f"See: sume-jobs quarantine show {bodies[0].id}", "After mending: sume-jobs quarantine replay --all"]
    )
