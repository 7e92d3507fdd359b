"""The watch over outages: people are told what jobs have waited for, and that Redis is away."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from shared.claims.states import Reason
from shared.claims.waits import LongWait, WaitStore
from shared.errors import QueueUnavailableError

LONG = timedelta(minutes=30)
"""A back-off of so much is no hiccup any more."""
REDIS_AWAY = timedelta(minutes=5)

WAITED_FOR: Mapping[Reason, str] = {
    Reason.DOWNLOAD_FAILED: "the artifact host does not give the whole file",
    Reason.STORAGE_FAILED: "the storage cannot be used; see: sume-jobs check",
    Reason.HANDLER_FAILED: "your handler, or the service it calls, fails; see the worker's log",
    Reason.SUME_API_FAILED: "Sume's API does not answer; see: sume-jobs check",
    Reason.TIMED_OUT: "attempts take longer than JOB_TIMEOUT_SECONDS",
}
"""What lasts until the world changes; other reasons are told of when they come up."""


class Pinged(Protocol):
    """The part of the queue that is watched."""

    def ping(self) -> None:
        """See Queue.ping."""
        ...


class OutageAlerts(Protocol):
    """The part of the alerts that tells of outages."""

    def tell_daily(self, kind: str, subject: str, title: str, body: str) -> bool:
        """See AppriseAlerts.tell_daily."""
        ...


class WaitWatch:
    """Tells of each outage once a day while it lasts."""

    def __init__(
        self,
        store: WaitStore,
        queue: Pinged,
        alerts: OutageAlerts,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._queue = queue
        self._alerts = alerts
        self._monotonic = monotonic
        self._redis_away_since: float | None = None

    def watch(self, _stop: threading.Event) -> None:
        """Look once; raises StoreUnavailableError."""
        for wait in self._store.long_waits(WAITED_FOR, longer_than=LONG):
            self._tell_of_wait(wait)
        self._look_at_redis()

    def _tell_of_wait(self, wait: LongWait) -> None:
        minutes = wait.longest // timedelta(minutes=1)
        self._alerts.tell_daily(
            f"waiting_{wait.reason.value}",  # a kind each, or the second of two outages would be held back
            "",
            f"{wait.jobs} jobs wait: {wait.reason.value}",
            f"For up to {minutes} minutes: {WAITED_FOR[wait.reason]}. They are tried again, ever more seldom, and "
            f"finish by themselves once that is over.\nSee: sume-jobs show {wait.job_id}",
        )

    def _look_at_redis(self) -> None:
        now = self._monotonic()
        try:
            self._queue.ping()
        except QueueUnavailableError as error:
            if self._redis_away_since is None:
                self._redis_away_since = now
            if now - self._redis_away_since >= REDIS_AWAY.total_seconds():
                self._alerts.tell_daily(
                    "redis_away",
                    "",
                    "Redis is away, so nothing is worked on",
                    f"{error}\nDeliveries are still stored; all of it goes on by itself when Redis is back.\n"
                    "See: sume-jobs check",
                )
        else:
            self._redis_away_since = None
