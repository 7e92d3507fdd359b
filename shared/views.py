"""How jobs and statistics look in JSON, the same from the API and the command line."""

from datetime import UTC, datetime
from typing import Any

from shared.claims.hosts import Circuit
from shared.claims.quarantine import QuarantineEntry
from shared.claims.records import JobPage, JobRecord, Stats, TimelineEntry
from shared.claims.states import STATES
from shared.claims.watch import ROLES
from shared.config import Settings
from shared.event import StoredArtifact
from shared.logs import Redactor
from shared.sume.signature import tag_of


def rfc3339(moment: datetime | None) -> str | None:
    """Return a time as RFC 3339 in UTC, ending in Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def job_view(job: JobRecord) -> dict[str, Any]:
    """Return a job with its files and its timeline."""
    return {
        "job_id": job.job_id,
        "state": job.state,
        "event": job.event,
        "status": job.status,
        "deliveries": job.deliveries,
        "attempts": job.attempts,
        "source": job.source,
        "conflict": job.conflict,
        "conflict_with": job.conflict_with,
        "error": job.error,
        "reason": job.reason,
        "status_url": shown_url(job.status_url),
        "first_seen": rfc3339(job.first_seen),
        "last_seen": rfc3339(job.last_seen),
        "updated_at": rfc3339(job.updated_at),
        "next_look_at": rfc3339(job.next_look_at),
        "acknowledged_at": rfc3339(job.acknowledged_at),
        "pruned_at": rfc3339(job.pruned_at),
        "artifacts": [artifact_view(artifact) for artifact in job.artifacts],
        "timeline": [timeline_view(entry) for entry in job.timeline],
    }


def shown_url(url: str | None) -> str | None:
    """Return a URL without its query, which may be a key: it is asked as given and shown to nobody (I9)."""
    return None if url is None else Redactor().text(url)


def artifact_view(artifact: StoredArtifact) -> dict[str, Any]:
    """Return one stored file of a job."""
    return {
        "index": artifact.index,
        "type": artifact.type,
        "content_type": artifact.content_type,
        "bytes": artifact.bytes,
        "sha256": artifact.sha256,
        "path": artifact.path,
    }


def timeline_view(entry: TimelineEntry) -> dict[str, Any]:
    """Return one change of state."""
    return {
        "at": rfc3339(entry.at),
        "state": entry.state,
        "cause": entry.cause,
        "attempt": entry.attempt,
        "detail": entry.detail,
    }


def page_view(page: JobPage) -> dict[str, Any]:
    """Return one page of a list of jobs."""
    return {"jobs": [job_view(job) for job in page.jobs], "next_cursor": page.next_cursor}


def stats_view(stats: Stats, *, queue_depth: int | None, settings: Settings) -> dict[str, Any]:
    """Return the statistics; `queue_depth` is None while Redis cannot be asked."""
    return {
        "states": {state: stats.states.get(state, 0) for state in STATES},
        "queue_depth": queue_depth,
        "oldest_waiting_seconds": stats.oldest_waiting_seconds,
        "redelivered": stats.redelivered,
        "conflicts": stats.conflicts,
        "quarantined": stats.quarantined,
        "unacknowledged": stats.unacknowledged,
        "waiting": stats.waiting,
        "circuits": [circuit_view(circuit) for circuit in stats.circuits],
        "refused": stats.refused,
        "refused_headers": {code: list(names) for code, names in stats.refused_headers.items()},
        "last_accepted_at": rfc3339(stats.last_accepted_at),
        "last_test_at": rfc3339(stats.last_test_at),
        "signing_secrets": [
            {"position": place, "last_used_at": rfc3339(stats.secrets_used.get(tag))}
            for place, tag in enumerate(secret_tags(settings), 1)
        ],
        "last_seen": {role: rfc3339(stats.last_seen.get(role)) for role in ROLES},
        "alive": {role: stats.alive.get(role, 0) for role in ROLES},
        "polling": polling_state(settings),
    }


def circuit_view(circuit: Circuit) -> dict[str, Any]:
    """Return one artifact host that fails for everybody."""
    return {
        "host": circuit.host,
        "failures": circuit.failures,
        "open_since": rfc3339(circuit.open_since),
        "next_probe_at": rfc3339(circuit.next_probe_at),
        "waiting": circuit.waiting,
    }


def quarantine_view(entry: QuarantineEntry) -> dict[str, Any]:
    """Return a signed body that was not understood, without the body."""
    return {
        "id": entry.id,
        "reason": entry.reason,
        "count": entry.count,
        "bytes": entry.bytes,
        "first_seen": rfc3339(entry.first_seen),
        "last_seen": rfc3339(entry.last_seen),
        "replayed_at": rfc3339(entry.replayed_at),
    }


def secret_tags(settings: Settings) -> tuple[str, ...]:
    """Return the tags of the signing secrets, in the order of the setting."""
    return tuple(tag_of(secret) for secret in settings.signing_secrets)


def polling_state(settings: Settings) -> str:
    """Return "on", or why jobs whose webhook never comes are not asked for."""
    return "on" if settings.sume_api_key is not None else "SUME_API_KEY is not set"
