"""Writes batches of claims: over a connection of the event loop where one is ready, else in a thread."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from api.lane import Lane
from shared.claims.records import Claim, ClaimResult
from shared.claims.store import ClaimConnection
from shared.errors import StoreUnavailableError
from shared.event import Event
from shared.logs import get_logger
from shared.metrics import Metrics

WRITERS = 2
"""Batches in flight at most: one that waits for a lock or a dead connection does not hold up everybody."""
LARGE = 1_000_000
"""Characters of payload that a thread writes, so that copying them does not hold up the event loop."""
OPEN_AGAIN_AFTER = timedelta(seconds=5)

Outcome: TypeAlias = ClaimResult | StoreUnavailableError
Outcomes: TypeAlias = Callable[[list[Outcome]], None]
"""Told, on the event loop, what became of each claim of a batch."""
Write: TypeAlias = Callable[[Sequence[Event], float], list[Outcome]]


class ClaimWriters:
    """Belongs to one event loop; no more than WRITERS batches may be under way.

    The event loop's connections are for what goes well: whatever else there is (the first batch, a database that is
    away, a row that cannot be written, bodies of megabytes) a thread meets, with `claim_events`, which blocks.
    """

    def __init__(
        self,
        claim_events: Callable[[Sequence[Event]], list[ClaimResult]],
        *,
        interrupt: Callable[[], None],
        metrics: Metrics,
        time_limit: timedelta,
        open_connection: Callable[[], ClaimConnection] | None = None,
        follow: Callable[[Sequence[Event], Sequence[ClaimResult]], None] = lambda _events, _results: None,
    ) -> None:
        """`follow` is what `claim_events` does after the commit; a connection of the event loop knows nothing of it."""
        self._claim_events = claim_events
        self._interrupt = interrupt
        self._metrics = metrics
        self._time_limit = time_limit.total_seconds()
        self._open_connection = open_connection
        self._follow = follow
        self._threads = Lane("claim-writer", threads=WRITERS, capacity=WRITERS)
        self._opener = Lane("claim-opener", threads=1, capacity=1)
        self._connections: list[ClaimConnection] = []
        self._opening = False
        self._closed = False
        self._open_again_at = 0.0

    def write(self, events: Sequence[Event], done: Outcomes) -> None:
        """Write a batch, and tell what became of it when it is durable, or may not be; `done` must not raise."""
        started = time.monotonic()
        connection = next((each for each in self._connections if each.ready()), None)
        if connection is not None and sum(len(event.payload) for event in events) <= LARGE:
            claims = [Claim(event) for event in events]
            try:
                connection.begin(claims, partial(self._take, events, started, done))
            except Exception:  # noqa: BLE001 - nothing was sent; the thread meets it again, and tells of it
                connection.close()
            else:
                return
        self._in_thread(self._write, events, started, done)

    def _take(
        self,
        events: Sequence[Event],
        started: float,
        done: Outcomes,
        outcome: list[ClaimResult] | StoreUnavailableError,
    ) -> None:
        """Go on from what became of a batch on a connection of the event loop."""
        if isinstance(outcome, StoreUnavailableError):
            if len(events) > 1 and outcome.reachable:
                self._in_thread(self._write_singly, events, started, done)
                return
            outcomes: list[Outcome] = [outcome] * len(events)
        else:
            try:
                self._follow(events, outcome)
            except Exception as error:  # noqa: BLE001 - a defect fails its batch, which Sume delivers again
                get_logger().error("claim.failed", exc_info=error)
                outcomes = [failed(error)] * len(events)
            else:
                outcomes = [*outcome]
        self._note(outcomes, started=started)
        done(outcomes)

    def _in_thread(self, write: Write, events: Sequence[Event], started: float, done: Outcomes) -> None:
        try:
            writing = self._threads.submit(partial(write, events, started))
        except Exception as error:  # noqa: BLE001 - no thread can be started: the batch must be told
            get_logger().error("claim.failed", exc_info=error)
            done([failed(error)] * len(events))
        else:
            writing.add_done_callback(partial(self._return, done))

    def _return(self, done: Outcomes, written: asyncio.Future[list[Outcome]]) -> None:
        outcomes = written.result()
        done(outcomes)
        if any(isinstance(outcome, ClaimResult) for outcome in outcomes):
            self._open_one()

    def _write(self, events: Sequence[Event], started: float) -> list[Outcome]:
        """Write one batch, in a thread; one row that cannot be written now fails alone."""
        outcomes = self._attempt(events)
        if len(events) > 1 and isinstance(outcomes[0], StoreUnavailableError) and outcomes[0].reachable:
            return self._write_singly(events, started)
        self._note(outcomes, started=started)
        return outcomes

    def _write_singly(self, events: Sequence[Event], started: float) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for event in events:
            if time.monotonic() >= started + self._time_limit:
                outcomes.append(StoreUnavailableError("other claims of the batch took too long"))
            else:
                outcomes += self._attempt([event])
        self._note(outcomes, started=started)
        return outcomes

    def _attempt(self, events: Sequence[Event]) -> list[Outcome]:
        """Claim the events in one statement: all of them, or none."""
        try:
            return list(self._claim_events(events))
        except StoreUnavailableError as error:
            return [error] * len(events)
        except Exception as error:  # noqa: BLE001 - a defect must fail its own row, not the writer thread
            if len(events) == 1:
                get_logger().exception("claim.failed", job_id=events[0].job_id)
            return [failed(error)] * len(events)

    def _note(self, outcomes: Sequence[Outcome], *, started: float) -> None:
        self._metrics.batch_written(len(outcomes), seconds=time.monotonic() - started)
        claimed = [outcome for outcome in outcomes if isinstance(outcome, ClaimResult)]
        new = sum(result.new for result in claimed)
        conflicts = sum(result.conflict for result in claimed)
        self._metrics.claims_committed(new=new, duplicate=len(claimed) - new, conflicts=conflicts)

    def _open_one(self) -> None:
        """Open another connection for the event loop, now that the database is known to answer."""
        self._connections = [connection for connection in self._connections if not connection.lost]
        if self._open_connection is None or self._opening or len(self._connections) >= WRITERS:
            return
        if self._closed or time.monotonic() < self._open_again_at:
            return
        self._opening = True
        self._opener.submit(self._open_connection).add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Future[ClaimConnection]) -> None:
        self._opening = False
        error = opening.exception()
        if error is not None:  # threads go on writing
            get_logger().warning("claim_connection.refused", problem=str(error) or type(error).__name__)
            self._open_again_at = time.monotonic() + OPEN_AGAIN_AFTER.total_seconds()
        elif self._closed:
            opening.result().close()
        else:
            self._connections.append(opening.result())

    def interrupt(self) -> None:
        """Break the batches that hang."""
        get_logger().warning("claim.interrupted", seconds=self._time_limit)
        self._interrupt()

    def close(self) -> None:
        """Let the threads end after what they are writing; call it when no request is left."""
        self._closed = True
        for connection in self._connections:
            connection.close()
        self._threads.close()
        self._opener.close()


def failed(error: Exception) -> StoreUnavailableError:
    """Return what a claim's request is told of a defect."""
    return StoreUnavailableError(f"{type(error).__name__} while claiming", reachable=True)
