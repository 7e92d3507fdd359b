"""The sweep: every claim that Redis or a worker lost is queued again (I1)."""

import functools
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from shared.claims.records import Message
from shared.claims.store import SweepStore
from shared.errors import QueueUnavailableError
from shared.intake import Intake
from shared.logs import get_logger

log = get_logger()

BATCH = 500


class WaitingMessages(Protocol):
    """The part of the queue that a sweep reads."""

    def ping(self) -> None:
        """See Queue.ping."""
        ...

    def waiting_ids(self) -> set[str]:
        """See Queue.waiting_ids."""
        ...


class Sweeper:
    """Takes leases that ran out from their workers, and sends messages for claims that wait too long.

    Guarantee: while Redis is away no overdue claim is used up, so all are sent as soon as it is back. Limit: a
    sweeper that dies between taking a batch and sending it leaves that batch to a sweep CLAIM_STALE_SECONDS later.
    """

    def __init__(
        self, store: SweepStore, queue: WaitingMessages, intake: Intake, *, stale: timedelta, batch: int = BATCH
    ) -> None:
        self._store = store
        self._queue = queue
        self._intake = intake
        self._stale = stale
        self._batch = batch
        self._unsent: list[Message] = []
        """Taken from the store when Redis went away, to be sent first when it is back."""

    def sweep(self, stop: threading.Event) -> None:
        """Do all that is due; raises StoreUnavailableError, and QueueUnavailableError once leases were seen to."""
        lost = self._lose_leases(stop)
        self._queue.ping()  # while Redis is away no claim is taken
        waiting = functools.cache(self._queue.waiting_ids)  # read once a sweep, if anything is due at all
        enqueued, spared = self._send(self._unsent, waiting=waiting)
        while not stop.is_set():
            batch = self._store.overdue_claims(limit=self._batch, stale=self._stale)
            sent_now, spared_now = self._send(batch, waiting=waiting)
            enqueued, spared = enqueued + sent_now, spared + spared_now
            if len(batch) < self._batch:
                break
        if lost or enqueued or spared:
            log.info("sweep.done", leases_lost=lost, enqueued=enqueued, still_waiting=spared)

    def _lose_leases(self, stop: threading.Event) -> int:
        count = 0
        while not stop.is_set():
            lost = self._store.lose_leases(limit=self._batch)
            for job_id in lost:
                log.warning("lease.lost", job_id=job_id)
            count += len(lost)
            if len(lost) < self._batch:
                break
        return count

    def _send(self, messages: list[Message], *, waiting: Callable[[], set[str]]) -> tuple[int, int]:
        """Send those whose last message is gone; return how many were sent and how many still wait."""
        self._unsent = messages
        gone = [message for message in messages if message.job_id not in waiting()]
        if not self._intake.enqueue(gone):
            raise QueueUnavailableError("Redis takes no message; the sweep sends them when it does")
        self._unsent = []
        return len(gone), len(messages) - len(gone)
