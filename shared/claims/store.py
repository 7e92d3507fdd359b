"""What a claim store promises: small compare-and-set writes that say whether they won.

Every method raises StoreUnavailableError when the database is away, locked, slow or full; then nothing was stored
that was not said to be. Time is the database's, so that a process whose clock jumps harms nobody.
`tests/conformance` is the definition a store is held to.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias
from uuid import UUID

from shared.claims.hosts import CircuitStore, HostStore
from shared.claims.quarantine import QuarantineStore
from shared.claims.records import (
    AuditRecord,
    Claim,
    ClaimResult,
    ExpectedJob,
    JobFilter,
    JobPage,
    JobRecord,
    Lease,
    Message,
    Pruned,
    Requeued,
    Stats,
)
from shared.claims.states import Reason
from shared.claims.storages import StorageStore
from shared.claims.waits import WaitStore
from shared.claims.watch import AlertStore, WatchStore
from shared.errors import StoreUnavailableError
from shared.event import StoredArtifact

ClaimsDone: TypeAlias = Callable[[list[ClaimResult] | StoreUnavailableError], None]
"""Told what became of a batch."""


class ClaimConnection(Protocol):
    """A connection over which an event loop claims without a thread. It belongs to the loop that first used it."""

    def ready(self) -> bool:
        """Whether a batch can be begun: none is under way, and the database has not hung up. Call it on the loop."""
        ...

    @property
    def lost(self) -> bool:
        """Whether it is closed, or the database hung up: it will never be ready again."""
        ...

    def begin(self, claims: Sequence[Claim], done: ClaimsDone) -> None:
        """Claim as `claim_many` does, and call `done` from the loop, once; a second batch may begin from there.

        Raises when nothing was sent; `done` is not called then, nor after `close`. It waits for as long as the
        database takes: `ReceivingStore.interrupt` ends that.
        """
        ...

    def close(self) -> None:
        """Give the connection up; call it on the loop. What is under way may be stored or not."""
        ...


class ReceivingStore(Protocol):
    """What the receiver and everybody who claims needs."""

    def claim_many(self, claims: Sequence[Claim]) -> list[ClaimResult]:
        """Claim jobs in one durable statement, counting their deliveries; results in the order given.

        Exactly one claim of any number for a job_id is new, in this batch, this process and all others (I4).
        A job_id may stand in a batch several times: the first is claimed, the others count.
        All rows are stored or none: a caller whose batch fails claims its rows singly.
        """
        ...

    def open_claim_connection(self) -> ClaimConnection:
        """Return a connection for claims from an event loop; this waits, and belongs into a thread.

        Close it before the store.
        """
        ...

    def expect(self, job_id: str, *, status_url: str | None, due_in: timedelta) -> bool:
        """Register a job whose event has not come; False when the job is known already (nothing changes then)."""
        ...

    def quarantine(self, body: bytes, *, reason: str) -> None:
        """Keep a signed body that was not understood, once with its count."""
        ...

    def count(self, counts: Mapping[str, int], *, details: Mapping[str, str]) -> None:
        """Add to the counters behind `stats`; a detail is kept with its counter until the next one.

        Names: `refused:<code>` (its detail names the headers that came), `webhook.test`, `accepted`, `redelivered`
        and `secret:<tag>`.
        """
        ...

    def check(self) -> None:
        """Return when claims can be stored now; raise StoreUnavailableError with the reason when not."""
        ...

    def interrupt(self) -> None:
        """Break every claim that hangs, from any thread: it fails with StoreUnavailableError at once.

        Whether its rows were stored is unknown then; Sume's next delivery finds out.
        """
        ...


class LeaseStore(HostStore, Protocol):
    """What a worker needs. A write that names a token wins only while that lease is the current one (I5)."""

    def take_lease(self, job_id: str, *, token: UUID, owner: str, lease: timedelta, max_attempts: int) -> Lease | None:
        """Move a claimed job whose time has come to running; None when there is nothing to do.

        A lease whose job has used up its strikes (`Lease.exhausted`) counts no attempt: the caller buries it.
        """
        ...

    def renew(self, job_id: str, *, token: UUID, lease: timedelta) -> bool:
        """Extend the lease to `lease` from now; False when it is no longer held."""
        ...

    def record_artifact(self, job_id: str, artifact: StoredArtifact, *, token: UUID) -> bool:
        """Keep what was verified about one published file, so that a rerun can reuse it."""
        ...

    def finish(self, job_id: str, artifacts: Sequence[StoredArtifact], *, token: UUID, acknowledged: bool) -> bool:
        """Move running to done with exactly these artifacts; `acknowledged` says that somebody was told of it."""
        ...

    def release(self, job_id: str, *, token: UUID, reason: Reason, error: str, wait: timedelta) -> bool:
        """Move running back to claimed, not to start before `wait` has passed; the attempt stays counted.

        A reason outside WORLD_REASONS counts as a strike.
        """
        ...

    def hand_back(
        self,
        job_id: str,
        *,
        token: UUID,
        reason: Reason,
        error: str | None,
        wait: timedelta,
        waits_for_host: str | None = None,
    ) -> bool:
        """Move running back to claimed without counting the attempt (shutdown, parked, waiting).

        Where it waits for a host with an open circuit, `tend_circuits` decides when it is due.
        """
        ...

    def bury(self, job_id: str, *, token: UUID | None, reason: Reason, error: str) -> bool:
        """Move running to dead; with token None, expected to dead. Called by shared.burial alone (I10)."""
        ...

    def acknowledge(self, job_ids: Iterable[str] | None) -> int:
        """Mark ERROR jobs as seen (None: all of them); return how many were newly marked."""
        ...


class SweepStore(CircuitStore, Protocol):
    """What the scheduler needs. Any number may call at once: each row goes to one of them."""

    def lose_leases(self, *, limit: int) -> list[str]:
        """Move running jobs whose lease ran out to claimed, due now, with a strike and reason worker_lost."""
        ...

    def overdue_claims(self, *, limit: int, stale: timedelta) -> list[Message]:
        """Return claimed jobs whose time has come, ERROR first, each not again before `stale` has passed."""
        ...

    def due_polls(self, *, limit: int, interval: timedelta, maximum: timedelta) -> list[ExpectedJob]:
        """Return expected jobs due to be asked for; each is due again after `interval`, doubling up to `maximum`."""
        ...

    def postpone_poll(self, job_id: str, *, wait: timedelta) -> None:
        """Ask for an expected job again only after `wait`."""
        ...

    def live_tokens(self, tokens: Collection[UUID]) -> set[UUID]:
        """Return those of the tokens that are the current lease of a running job, run out or not."""
        ...

    def prune(self, *, older_than: timedelta, limit: int, dry_run: bool) -> Pruned:
        """Delete payload, timeline and artifact rows of done jobs past retention, and replayed quarantine; keys stay.

        ERROR jobs nobody was told of, dead and open jobs and all files stay.
        """
        ...


class OperatorStore(Protocol):
    """What people and their tools need."""

    def list_jobs(self, wanted: JobFilter) -> JobPage:
        """Return jobs, those that need a person first."""
        ...

    def get_job(self, job_id: str) -> JobRecord | None:
        """Return one job with artifacts and timeline."""
        ...

    def dead_job_ids(self, *, reason: Reason | None, since: timedelta | None) -> list[str]:
        """Return the ids of dead jobs, oldest first, buried within `since`."""
        ...

    def requeue(self, job_id: str, *, force: bool) -> Requeued:
        """Reopen a dead job (with force a done one that is not pruned): attempts and strikes restart at 0.

        A job without an event becomes expected, due now.
        """
        ...

    def acknowledge(self, job_ids: Iterable[str] | None) -> int:
        """Mark ERROR jobs as seen (None: all of them); return how many were newly marked."""
        ...

    def stats(self) -> Stats:
        """Count everything; reads the whole job table."""
        ...

    def audit(self) -> Iterator[AuditRecord]:
        """Yield every job with an event, with its artifacts, without holding them all in memory."""
        ...


class Store(
    ReceivingStore,
    LeaseStore,
    SweepStore,
    OperatorStore,
    StorageStore,
    WaitStore,
    QuarantineStore,
    WatchStore,
    AlertStore,
    Protocol,
):
    """All of it, as one database gives it."""

    def close(self) -> None:
        """Give every connection back."""
        ...
