"""Group commit: whatever arrived while the last batch was being written is the next batch."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from api.claim_writers import WRITERS, ClaimWriters, Outcome
from shared.claims.records import ClaimResult
from shared.errors import StoreUnavailableError
from shared.event import Event
from shared.logs import get_logger

BATCH_LIMIT = 64
FEW = 12
"""Beside so few claims under way another batch is begun at once: an eighth more claims a second, and a delivery that
comes alone does not wait for the one before. Beside more, what waits is better left to grow."""
HELD_UP_AFTER = timedelta(milliseconds=20)
"""A batch that takes so long is not waited for, nor is one that leaves a full batch waiting."""
CAPACITY = 4096
"""Claims that may wait; more is an overload, answered at once so that Sume tries again."""

Settle: TypeAlias = Callable[[Outcome], None]
"""Told on the event loop what became of a claim, once."""


@dataclass(slots=True, eq=False)
class Waiter:
    """One request that waits for its claim; touched on the event loop alone."""

    event: Event
    settle: Settle
    timer: asyncio.TimerHandle | None = None
    settled: bool = False

    def tell(self, outcome: Outcome) -> None:
        """Tell the request what became of its claim, unless it was told already; a defect in it is its own."""
        if self.settled:
            return
        self.settled = True
        if self.timer is not None:
            self.timer.cancel()
        try:
            self.settle(outcome)
        except Exception:  # noqa: BLE001 - the others of the batch must be told
            get_logger().exception("claim.unanswered", job_id=self.event.job_id)

    def give_up(self) -> None:
        """Let the request go on without its claim, when it has waited for too long."""
        self.tell(StoreUnavailableError("the database did not answer in time"))

    def leave(self) -> None:
        """Wait no longer: a request that was cancelled takes no place in a batch."""
        self.settled = True
        if self.timer is not None:
            self.timer.cancel()


@dataclass(slots=True, eq=False)
class Flight:
    """One batch that is being written."""

    batch: list[Waiter]
    timers: tuple[asyncio.TimerHandle, ...] = ()
    prompt: bool = True
    """It has not been under way for long: worth waiting for."""


class GroupCommit:
    """Turns single claims into batches.

    Belongs to one event loop, so nothing here needs a lock. A request that is cancelled takes nothing from the
    others; a claim that is being written then stays written.
    """

    def __init__(
        self,
        writers: ClaimWriters,
        *,
        time_limit: timedelta,
        capacity: int = CAPACITY,
        held_up_after: timedelta = HELD_UP_AFTER,
    ) -> None:
        self._writers = writers
        self._time_limit = time_limit.total_seconds()
        self._capacity = capacity
        self._held_up_after = held_up_after.total_seconds()
        self._idle_writers = WRITERS
        self._prompt = 0
        self._waiting: deque[Waiter] = deque()
        self._behind: dict[str, list[Waiter]] = {}
        """For each job that is being written, what came for it meanwhile: its row is locked until then."""
        self._behind_count = 0
        self._dispatch_scheduled = False

    async def claim(self, event: Event, *, deadline: float | None = None) -> ClaimResult:
        """Return when the claim is durable (I3); raises StoreUnavailableError when it may not be.

        It waits until `deadline`, which is in the event loop's time, or for as long as the writers try.
        """
        future: asyncio.Future[ClaimResult] = asyncio.get_running_loop().create_future()
        waiter = self.begin(event, partial(settle_future, future), deadline=deadline)
        try:
            return await future
        finally:
            waiter.leave()

    def begin(self, event: Event, settle: Settle, *, deadline: float | None = None) -> Waiter:
        """Claim without a task that waits; `settle` is called when the claim is durable, or may not be.

        Raises StoreUnavailableError where so many wait that it cannot be begun; then `settle` is not called.
        """
        if len(self._waiting) + self._behind_count >= self._capacity:
            raise StoreUnavailableError("too many deliveries wait for the database")
        loop = asyncio.get_running_loop()
        waiter = Waiter(event, settle)
        if deadline is not None:
            # One timer, where asyncio.timeout would add a context manager and a task's cancellation: 3 µs of 70.
            waiter.timer = loop.call_at(deadline, waiter.give_up)
        self._waiting.append(waiter)
        if not self._dispatch_scheduled:
            # At the end of this turn of the loop, so that every request that is ready now joins the batch.
            self._dispatch_scheduled = True
            loop.call_soon(self._dispatch)
        return waiter

    def _dispatch(self) -> None:
        """Begin a batch, unless one is under way that is worth waiting for."""
        self._dispatch_scheduled = False
        while self._idle_writers and (self._prompt <= FEW or len(self._waiting) >= BATCH_LIMIT):
            batch = self._next_batch()
            if not batch:
                break
            for waiter in batch:
                self._behind.setdefault(waiter.event.job_id, [])
            loop = asyncio.get_running_loop()
            flight = Flight(batch)
            flight.timers = (
                loop.call_later(self._held_up_after, self._pass_by, flight),
                loop.call_later(self._time_limit, self._writers.interrupt),
            )
            self._idle_writers -= 1
            self._prompt += len(batch)
            self._writers.write([waiter.event for waiter in batch], partial(self._settle, flight))

    def _pass_by(self, flight: Flight) -> None:
        """Wait no longer for a batch that is held up."""
        flight.prompt = False
        self._prompt -= len(flight.batch)
        self._dispatch()

    def _next_batch(self) -> list[Waiter]:
        batch: list[Waiter] = []
        while self._waiting and len(batch) < BATCH_LIMIT:
            waiter = self._waiting.popleft()
            if waiter.settled:  # given up meanwhile: answered 503, so Sume sends it again
                continue
            behind = self._behind.get(waiter.event.job_id)
            if behind is None:
                batch.append(waiter)
            else:  # two batches with the same row would wait for each other's commit
                behind.append(waiter)
                self._behind_count += 1
        return batch

    def _settle(self, flight: Flight, outcomes: list[Outcome]) -> None:
        for timer in flight.timers:
            timer.cancel()
        if flight.prompt:
            self._prompt -= len(flight.batch)
        self._idle_writers += 1
        for waiter, outcome in zip(flight.batch, outcomes, strict=True):
            self._let_go(waiter.event.job_id, None if flight.prompt or isinstance(outcome, ClaimResult) else outcome)
        self._dispatch()  # first, so that the next batch is written while this one is answered
        for waiter, outcome in zip(flight.batch, outcomes, strict=True):
            waiter.tell(outcome)

    def _let_go(self, job_id: str, error: StoreUnavailableError | None) -> None:
        """Let what waited behind a job have its turn; where the job held its batch up, it would do so again."""
        behind = self._behind.pop(job_id, None)
        if not behind:
            return
        self._behind_count -= len(behind)
        if error is None:
            self._waiting.extendleft(reversed(behind))
        else:
            for waiter in behind:
                waiter.tell(error)


def settle_future(future: asyncio.Future[ClaimResult], outcome: Outcome) -> None:
    """Give a claim's outcome to a task that may not wait any more."""
    if future.done():
        return
    if isinstance(outcome, ClaimResult):
        future.set_result(outcome)
    else:
        future.set_exception(StoreUnavailableError(str(outcome)))
