"""Stand-ins for the store and the queue that a test can hold up, break and look into."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from shared.claims.records import ClaimResult, Message
from shared.event import Event

PATIENCE_SECONDS = 20


def event(job_id: str) -> Event:
    """Return a plain event of a job."""
    return Event(job_id=job_id, name="job.completed", status="OK", payload="{}")


class FakeClaims:
    """Claims in memory, all of a batch or none; `gate` holds every batch up while it is closed."""

    def __init__(self, problem: Callable[[Sequence[Event]], Exception | None] = lambda _events: None) -> None:
        self.problem = problem
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.batches: list[list[str]] = []
        self.deliveries: Counter[str] = Counter()
        self.interrupted = threading.Event()
        self._lock = threading.Lock()

    def claim(self, events: Sequence[Event]) -> list[ClaimResult]:
        """Claim, or raise what `problem` says."""
        with self._lock:
            self.batches.append([e.job_id for e in events])
        self.entered.release()
        assert self.gate.wait(PATIENCE_SECONDS)
        failure = self.problem(events)
        if failure is not None:
            raise failure
        with self._lock:
            return [self._claim_one(e) for e in events]

    def _claim_one(self, claimed: Event) -> ClaimResult:
        self.deliveries[claimed.job_id] += 1
        count = self.deliveries[claimed.job_id]
        return ClaimResult(claimed.job_id, count == 1, claimed.name, claimed.status, count, conflict=False)

    def interrupt(self) -> None:
        """Let go of what is held up."""
        self.interrupted.set()
        self.gate.set()


class FakeQueue:
    """Remembers what it was sent; `gate` holds it up, `problem` breaks it."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Semaphore(0)
        self.problem: Exception | None = None
        self.batches: list[list[str]] = []
        self.closed = False

    async def send(self, messages: Sequence[Message]) -> None:
        """Take the messages, or raise."""
        problem = self.problem
        self.entered.release()
        await self.gate.wait()
        if problem is not None:
            raise problem
        self.batches.append([message.job_id for message in messages])

    async def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    @property
    def sent(self) -> list[str]:
        """The job_ids sent so far."""
        return [job_id for batch in self.batches for job_id in batch]


class FakeCounters:
    """Adds up counts; `problem` breaks it."""

    def __init__(self) -> None:
        self.problem: Exception | None = None
        self.counts: Counter[str] = Counter()
        self.details: dict[str, str] = {}

    def count(self, counts: Mapping[str, int], *, details: Mapping[str, str]) -> None:
        """Add, or raise."""
        if self.problem is not None:
            raise self.problem
        self.counts.update(counts)
        self.details.update(details)
