"""The facts about a job that travel through the system."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

EventName: TypeAlias = Literal["job.completed", "job.failed", "job.canceled"]
Status: TypeAlias = Literal["OK", "ERROR"]
Source: TypeAlias = Literal["webhook", "poll"]

EVENT_NAMES: tuple[EventName, ...] = ("job.completed", "job.failed", "job.canceled")


@dataclass(frozen=True, slots=True)
class Event:
    """The fact that a job ended, as one delivery (or one poll) told it."""

    job_id: str
    name: EventName
    status: Status
    payload: str
    """The body exactly as it came: UTF-8 decoded, a BOM kept, so that encoding it gives the same bytes."""
    source: Source = "webhook"
    status_url: str | None = None
    error: str | None = None
    """Sume's error in one line, for an ERROR event."""
    conflict: str | None = None
    """What contradicts this event: a stated status, or another event name in the same group commit."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a job as Sume announced it; every claim in it is unverified."""

    index: int
    url: str
    type: str | None = None
    content_type: str | None = None
    filename: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """One file of a job as it was verified and published."""

    index: int
    path: str
    """Relative to the storage root, for example `job_demo/00-picture.png`."""
    bytes: int
    sha256: str
    content_type: str | None = None
    type: str | None = None
