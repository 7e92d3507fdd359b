"""The state machine of a job: every state, every transition, every reason.

    expected ──claim──▶ claimed ──take──▶ running ──finish──▶ done
       │  ▲                ▲  ▲             │ │
       │  │                │  └─release/lose┘ └──bury──▶ dead
       │  │                └──────requeue────────────────┘
       │  └──requeue (no event yet)──────────────────────┘
       └──bury (poll gave up)──▶ dead ──claim (its first event)──▶ claimed

Legend: *claim* the first event of a webhook or poll; *take* a worker's lease; *release* an attempt ends to be repeated
(also park and hand back, which count no attempt); *lose* a lease ran out; *bury* give up; *requeue* an operator
reopens (a done job only with force). Nothing else moves a job, and the database holds it to that by WHERE and CHECK.
"""

from enum import StrEnum
from typing import Literal, TypeAlias

State: TypeAlias = Literal["expected", "claimed", "running", "done", "dead"]
STATES: tuple[State, ...] = ("expected", "claimed", "running", "done", "dead")

TRANSITIONS: frozenset[tuple[State, State]] = frozenset(
    {
        ("expected", "claimed"),
        ("expected", "dead"),
        ("claimed", "running"),
        ("running", "claimed"),
        ("running", "done"),
        ("running", "dead"),
        ("dead", "claimed"),
        ("dead", "expected"),
        ("done", "claimed"),
    }
)


class Reason(StrEnum):
    """Why a job is dead or waits: the fixed list that operators filter by (`requeue --state dead --reason R`)."""

    HOST_NOT_ALLOWED = "host_not_allowed"
    """The artifact's host is not in ARTIFACT_HOSTS; parked until it is."""
    DOWNLOAD_FAILED = "download_failed"
    """The artifact host did not give the whole file."""
    URL_NOT_ALLOWED = "url_not_allowed"
    """The artifact's URL is not http(s) or leads to a private or loopback address."""
    INTEGRITY_FAILED = "integrity_failed"
    """What arrived is not what was promised: length, SHA-256 or kind of file."""
    TOO_LARGE = "too_large"
    """The file is larger than ARTIFACT_MAX_BYTES."""
    STORAGE_FAILED = "storage_failed"
    """The storage could not be written or read."""
    STORAGE_FULL = "storage_full"
    """Less than STORAGE_MIN_FREE_BYTES is free in the storage: downloads wait until there is more."""
    HANDLER_FAILED = "handler_failed"
    """The user's handler raised."""
    SUME_API_FAILED = "sume_api_failed"
    """Sume's API did not answer a question the attempt needed answered."""
    TIMED_OUT = "timed_out"
    """The attempt took longer than JOB_TIMEOUT_SECONDS."""
    WORKER_LOST = "worker_lost"
    """The worker died or stalled: its lease ran out."""
    WORKER_STOPPED = "worker_stopped"
    """The worker was told to stop and handed the job back; not counted as an attempt."""
    NO_ARTIFACT_LIST = "no_artifact_list"
    """An OK event without an artifact list, and Sume's API cannot be asked for one."""
    INVALID_PAYLOAD = "invalid_payload"
    """The stored payload is not a JSON object (a plain insert by another receiver)."""
    POLL_GAVE_UP = "poll_gave_up"
    """An expected job did not end within POLL_GIVE_UP_SECONDS."""


WORLD_REASONS: frozenset[Reason] = frozenset(
    {
        Reason.DOWNLOAD_FAILED,
        Reason.STORAGE_FAILED,
        Reason.HANDLER_FAILED,
        Reason.SUME_API_FAILED,
        Reason.TIMED_OUT,
    }
)
"""Failures of the world around us, which must last RETRY_FOR_SECONDS too before a job is dead."""
