"""The bodies we write ourselves, in the shape of a delivery."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from shared.event import EVENT_NAMES, Artifact, Event, EventName, Source
from shared.sume.payload import error_line, status_of

ARTIFACT_KEYS = ("url", "type", "content_type", "filename", "size_bytes", "sha256")


def build_body(
    job_id: str | None,
    *,
    event: str,
    status_url: str | None = None,
    error: Mapping[str, str] | None = None,
    artifacts: Sequence[Artifact] | None = None,
    source: Source | None = None,
) -> bytes:
    """Return a delivery's body, without the keys that are None; only the three events state a status."""
    keys = {
        "event": event,
        "job_id": job_id,
        "status": status_of(event) if event in EVENT_NAMES else None,
        "source": source,
        "status_url": status_url,
        "error": error,
        "artifacts": None if artifacts is None else [describe(artifact) for artifact in artifacts],
    }
    return orjson.dumps({key: value for key, value in keys.items() if value is not None})


def build_polled_body(
    job_id: str,
    *,
    event: EventName,
    status_url: str | None = None,
    error: Mapping[str, str] | None = None,
    artifacts: Sequence[Artifact] | None = None,
) -> str:
    """Return the payload of a job found by polling: a delivery's keys and `"source": "poll"`."""
    body = build_body(job_id, event=event, status_url=status_url, error=error, artifacts=artifacts, source="poll")
    return body.decode("utf-8")


def build_polled_event(
    job_id: str,
    *,
    event: EventName,
    status_url: str | None = None,
    error: Mapping[str, str] | None = None,
    artifacts: Sequence[Artifact] | None = None,
) -> Event:
    """Return the event to claim for a job that polling found ended."""
    return Event(
        job_id=job_id,
        name=event,
        status=status_of(event),
        payload=build_polled_body(job_id, event=event, status_url=status_url, error=error, artifacts=artifacts),
        source="poll",
        status_url=status_url,
        error=error_line(error),
    )


def describe(artifact: Artifact) -> dict[str, Any]:
    """Return an artifact as an entry of a body's list."""
    return {key: value for key in ARTIFACT_KEYS if (value := getattr(artifact, key)) is not None}
