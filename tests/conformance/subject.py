"""The store under test, and how its tests pass the time."""

from abc import ABC, abstractmethod
from datetime import timedelta
from uuid import UUID, uuid4

from shared.claims.records import Claim, ClaimResult, Lease
from shared.claims.store import Store
from shared.event import Event, EventName, Source, Status

LEASE = timedelta(seconds=60)
STALE = timedelta(seconds=120)
MAX_ATTEMPTS = 3


class Subject(ABC):
    """A store with what only its owner knows: how to make its clock pass, how to insert as a stranger does."""

    store: Store

    @abstractmethod
    def let_pass(self, time: timedelta) -> None:
        """Make everything in the store older by `time`: the same as waiting, without waiting."""

    @abstractmethod
    def plain_insert(self, job_id: str) -> None:
        """Run the contract's insert of another receiver, word for word."""

    def deliver(
        self,
        job_id: str,
        name: EventName = "job.completed",
        *,
        status: Status | None = None,
        source: Source = "webhook",
        payload: str = '{"a":1}',
    ) -> ClaimResult:
        """Claim one job as the receiver (or with source poll, the poller) does."""
        [result] = self.store.claim_many([Claim(event(job_id, name, status=status, source=source, payload=payload))])
        return result

    def take(self, job_id: str, *, max_attempts: int = MAX_ATTEMPTS) -> Lease:
        """Take a lease that must be there to take."""
        lease = self.try_take(job_id, max_attempts=max_attempts)
        assert lease is not None
        return lease

    def try_take(self, job_id: str, *, token: UUID | None = None, max_attempts: int = MAX_ATTEMPTS) -> Lease | None:
        """Take a lease if there is one."""
        return self.store.take_lease(
            job_id, token=token or uuid4(), owner="test-worker", lease=LEASE, max_attempts=max_attempts
        )

    def state(self, job_id: str) -> str:
        """Return the state a person would see."""
        record = self.store.get_job(job_id)
        assert record is not None
        return record.state


def event(
    job_id: str,
    name: EventName = "job.completed",
    *,
    status: Status | None = None,
    source: Source = "webhook",
    payload: str = '{"a":1}',
    conflict: str | None = None,
) -> Event:
    """Build an event as the parser would."""
    return Event(
        job_id=job_id,
        name=name,
        status=status or ("OK" if name == "job.completed" else "ERROR"),
        payload=payload,
        source=source,
        status_url="https://api.open.sume.com/v1/jobs/x/status" if source == "webhook" else None,
        error=None if name == "job.completed" else "nsfw: refused",
        conflict=conflict,
    )
