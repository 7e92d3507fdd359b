"""The facts that cross the border of a claim store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias
from uuid import UUID

from shared.claims.hosts import Circuit
from shared.claims.states import Reason, State
from shared.event import Event, Source, Status, StoredArtifact


@dataclass(frozen=True, slots=True)
class Claim:
    """One wish to handle a job: a webhook delivery, or the answer of a poll (which is no delivery)."""

    event: Event


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What became of a claim; `event` and `status` are those that are kept, not necessarily those claimed."""

    job_id: str
    new: bool
    event: str
    status: Status
    deliveries: int
    conflict: bool
    """This very claim named another event or status than the one kept."""


@dataclass(frozen=True, slots=True)
class Message:
    """What Redis is told about a job (I2)."""

    job_id: str
    event: str
    status: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's time-limited right to a job, with all it needs to work on it."""

    job_id: str
    token: UUID
    event: str
    status: Status
    payload: str
    status_url: str | None
    attempt: int
    strikes: int
    exhausted: bool
    """The strikes are used up: bury the job, do not work on it."""
    previous_reason: Reason | None
    previous_error: str | None
    claimed_for: timedelta
    """Time since the claim (or the last requeue), as RETRY_FOR_SECONDS counts."""
    acknowledged: bool
    artifacts: tuple[StoredArtifact, ...]
    """Files that earlier attempts verified and published."""
    failing_hosts: Mapping[str, bool] = field(default_factory=dict)
    """Artifact hosts that failed since they last worked, and whether the circuit of each is open."""


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """A registered job without an event, due to be asked for."""

    job_id: str
    status_url: str | None
    polls: int
    expected_for: timedelta
    """Time since it was registered or requeued, as POLL_GIVE_UP_SECONDS counts."""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One change of state and what caused it."""

    at: datetime
    state: State
    cause: str
    attempt: int
    detail: str | None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as people see it; without the payload, which may hold signed URLs (I9)."""

    job_id: str
    state: State
    event: str | None
    status: Status | None
    deliveries: int
    attempts: int
    source: Source | None
    conflict: bool
    conflict_with: str | None
    error: str | None
    reason: str | None
    status_url: str | None
    first_seen: datetime | None
    last_seen: datetime | None
    updated_at: datetime
    next_look_at: datetime | None
    acknowledged_at: datetime | None
    pruned_at: datetime | None
    artifacts: tuple[StoredArtifact, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list; a cursor continues the page that gave it."""

    state: State | None = None
    status: Status | None = None
    redelivered: bool = False
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of jobs; `next_cursor` is None on the last."""

    jobs: tuple[JobRecord, ...]
    next_cursor: str | None


RequeueOutcome: TypeAlias = Literal["requeued", "expected", "unknown", "not_dead", "pruned"]


@dataclass(frozen=True, slots=True)
class Requeued:
    """What became of a requeue; `message` is set when the job is claimed again and wants to be enqueued."""

    outcome: RequeueOutcome
    state: State | None = None
    """The state the job was found in (before the requeue)."""
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning deleted, or would delete."""

    jobs: int
    quarantine: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The counts behind `stats`; queue depth and polling are added by whoever shows them."""

    states: dict[str, int]
    oldest_waiting_seconds: float
    """Age of the oldest claimed job that is due; 0.0 when nothing waits."""
    redelivered: int
    conflicts: int
    quarantined: int
    unacknowledged: int
    refused: dict[str, int]
    last_test_at: datetime | None
    last_accepted_at: datetime | None = None
    """When a delivery was last answered 2xx, to a few seconds."""
    refused_headers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By code, the names of the headers that came with the last delivery refused with it."""
    secrets_used: dict[str, datetime] = field(default_factory=dict)
    """By its tag (`shared.sume.signature.tag_of`), when a secret last signed a delivery that was taken."""
    last_seen: dict[str, datetime] = field(default_factory=dict)
    """By role (scheduler, worker), when any of them last said that it lives."""
    alive: dict[str, int] = field(default_factory=dict)
    """By role, how many said so within a minute."""
    waiting: dict[str, int] = field(default_factory=dict)
    """Claimed jobs by reason, those without one left out."""
    circuits: tuple[Circuit, ...] = ()
    """Artifact hosts that fail for everybody."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What the audit compares with the storage."""

    job_id: str
    state: State
    status: Status
    reason: str | None
    pruned: bool
    artifacts: tuple[StoredArtifact, ...]
