"""A stand-in for the event loop's connection to the database, and writers whose openings a test can await."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from api.claim_writers import ClaimWriters, Outcome
from shared.claims.records import Claim, ClaimResult
from shared.claims.store import ClaimConnection, ClaimsDone
from shared.errors import StoreUnavailableError
from shared.event import Event
from shared.metrics import Metrics
from tests.api.fakes import PATIENCE_SECONDS, FakeClaims

LONG = timedelta(seconds=20)


class FakeConnection:
    """Claims from the event loop; `stuck` keeps what is begun under way, `refusal` lets nothing begin."""

    def __init__(self, claims: FakeClaims) -> None:
        self.claims = claims
        self.refusal: Exception | None = None
        self.stuck = False
        self.lost = False
        self.entered = asyncio.Semaphore(0)
        self.closed = asyncio.Event()
        self._under_way: tuple[list[Event], ClaimsDone] | None = None

    def ready(self) -> bool:
        """See ClaimConnection.ready."""
        return not self.lost and self._under_way is None

    def begin(self, claims: Sequence[Claim], done: ClaimsDone) -> None:
        """See ClaimConnection.begin."""
        assert self.ready()
        if self.refusal is not None:
            raise self.refusal
        self._under_way = [claim.event for claim in claims], done
        self.entered.release()
        if not self.stuck:
            asyncio.get_running_loop().call_soon(self.answer)

    def answer(self) -> None:
        """Let the database answer what is under way."""
        if self._under_way is None:
            return
        (events, done), self._under_way = self._under_way, None
        outcome: list[ClaimResult] | StoreUnavailableError
        try:
            outcome = self.claims.claim(events)
        except StoreUnavailableError as error:
            outcome = error
        done(outcome)

    def hang_up(self) -> None:
        """Let the database hang up."""
        self.lost = True
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            _, done = under_way
            done(StoreUnavailableError("the database hung up"))

    def close(self) -> None:
        """See ClaimConnection.close; raises outside the event loop."""
        asyncio.get_running_loop()
        self.lost = True
        self._under_way = None
        self.closed.set()


class FakeOpener:
    """Opens connections in a thread; `gate` holds it up, `problem` breaks it."""

    def __init__(self) -> None:
        self.claims = FakeClaims()
        """What is claimed over its connections, and not by threads."""
        self.connections: list[FakeConnection] = []
        self.problem: Exception | None = None
        self.attempts = 0
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> ClaimConnection:
        """Return a connection, or raise."""
        self.attempts += 1
        assert self.gate.wait(PATIENCE_SECONDS)
        if self.problem is not None:
            raise self.problem
        self.connections.append(FakeConnection(self.claims))
        return self.connections[-1]


class Followed:
    """What was told after the commit, and how many deliveries of each job were stored by then."""

    def __init__(self, claims: FakeClaims) -> None:
        self.claims = claims
        self.problem: Exception | None = None
        self.batches: list[list[str]] = []
        self.stored: list[Counter[str]] = []

    def follow(self, events: Sequence[Event], results: Sequence[ClaimResult]) -> None:
        """Remember, or raise."""
        assert [each.job_id for each in events] == [result.job_id for result in results]
        self.batches.append([each.job_id for each in events])
        self.stored.append(Counter(self.claims.deliveries))
        if self.problem is not None:
            raise self.problem


class WatchedWriters(ClaimWriters):
    """Writers that tell when an opening is over; `after` lets the time to the next one pass."""

    opened: asyncio.Semaphore

    def _opened(self, opening: asyncio.Future[ClaimConnection]) -> None:
        super()._opened(opening)
        self.opened.release()

    @property
    def open_again_at(self) -> float:
        """When the next connection may be opened, on the clock that never jumps."""
        return self._open_again_at

    def after(self, passed: timedelta) -> None:
        """Go on as if so much time had passed."""
        self._open_again_at -= passed.total_seconds()

    def write_all(self, *job_ids: str, payload: str = "{}") -> asyncio.Future[list[Outcome]]:
        """Begin one batch; being told of it twice is an error of the story."""
        told: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self.write([Event(each, "job.completed", "OK", payload) for each in job_ids], told.set_result)
        return told


class Scene:
    """Threads, connections and what follows, around the writers that a story is about."""

    def __init__(
        self,
        problem: Callable[[Sequence[Event]], Exception | None] = lambda _events: None,
        *,
        time_limit: timedelta = LONG,
    ) -> None:
        """`problem` is that of the batches which threads write."""
        self.claims = FakeClaims(problem)
        self.opener = FakeOpener()
        self.followed = Followed(self.opener.claims)
        self.metrics = Metrics()
        self.writers = WatchedWriters(
            self.claims.claim,
            interrupt=self.interrupt,
            metrics=self.metrics,
            time_limit=time_limit,
            open_connection=self.opener.open,
            follow=self.followed.follow,
        )
        self.writers.opened = asyncio.Semaphore(0)

    @property
    def by_thread(self) -> list[list[str]]:
        """The batches that threads wrote, or tried to."""
        return self.claims.batches

    @property
    def by_connection(self) -> list[list[str]]:
        """The batches that were answered over a connection, with success or not."""
        return self.opener.claims.batches

    def interrupt(self) -> None:
        """Break what hangs, as the store does: the event loop notices in a later turn."""
        self.claims.interrupt()
        for connection in self.opener.connections:
            asyncio.get_running_loop().call_soon(connection.hang_up)

    def join(self) -> None:
        """Wait for every thread, so that whatever was asked of one has been done."""
        for thread in (*self.writers._threads._threads, *self.writers._opener._threads):
            if thread.ident is not None:
                thread.join(PATIENCE_SECONDS)

    async def connect(self) -> FakeConnection:
        """Have a thread write one batch, and return the connection that is opened after it."""
        number = len(self.by_thread)
        assert isinstance((await self.writers.write_all(f"by-thread-{number}"))[0], ClaimResult)
        await self.writers.opened.acquire()
        self.by_thread.clear()
        return self.opener.connections[-1]


@asynccontextmanager
async def scene(
    problem: Callable[[Sequence[Event]], Exception | None] = lambda _events: None, *, time_limit: timedelta = LONG
) -> AsyncIterator[Scene]:
    """Set a scene and end its threads."""
    acted = Scene(problem, time_limit=time_limit)
    try:
        yield acted
    finally:
        acted.claims.gate.set()
        acted.opener.gate.set()
        acted.writers.close()
        await asyncio.to_thread(acted.join)


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run one async story; an error that the event loop had to swallow fails it."""
    swallowed: list[object] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: swallowed.append(context))
        await asyncio.wait_for(story(), 60)

    asyncio.run(watched())
    assert swallowed == []


def failing(job_id: str, error: Exception) -> Callable[[Sequence[Event]], Exception | None]:
    """Return a problem of every batch that holds the job."""
    return lambda events: error if any(each.job_id == job_id for each in events) else None


def kinds(outcomes: Sequence[Outcome]) -> list[bool]:
    """Return which of the claims are stored."""
    return [isinstance(outcome, ClaimResult) for outcome in outcomes]
