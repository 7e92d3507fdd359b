"""What a job's row does not hold: its published files and its timeline."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Row

from shared.claims.postgres.database import Database
from shared.claims.records import TimelineEntry
from shared.event import StoredArtifact

# The files of some jobs, in Sume's order.
ARTIFACTS = text("""
    SELECT job_id, index, path, bytes, sha256, content_type, type FROM sume_artifacts
    WHERE job_id = ANY(cast(:job_ids AS text[])) ORDER BY job_id, index
""")

# Registration and claim are columns of the row (a claim writes one row, no more); every later change was noted.
TIMELINE = text("""
    SELECT job_id, registered_at AS at, 'expected' AS state, 'registered' AS cause, 0 AS attempt, NULL AS detail,
        0 AS id
    FROM sume_jobs WHERE job_id = ANY(cast(:job_ids AS text[])) AND registered_at IS NOT NULL AND pruned_at IS NULL
    UNION ALL SELECT job_id, first_seen, 'claimed', 'claimed by ' || source, 0, event, 1
    FROM sume_jobs WHERE job_id = ANY(cast(:job_ids AS text[])) AND first_seen IS NOT NULL AND pruned_at IS NULL
    UNION ALL SELECT job_id, at, state, cause, attempt, detail, id + 1
    FROM sume_timeline WHERE job_id = ANY(cast(:job_ids AS text[]))
    ORDER BY at, id
""")


def stored_artifacts(database: Database, job_ids: Sequence[str]) -> dict[str, tuple[StoredArtifact, ...]]:
    """Return the files that attempts at these jobs published; a job without any is an empty tuple."""
    found: defaultdict[str, tuple[StoredArtifact, ...]] = defaultdict(tuple)
    for row in database.rows(ARTIFACTS, job_ids=list(job_ids)):
        found[row.job_id] += (stored_artifact(row),)
    return found


def timelines(database: Database, job_ids: Sequence[str]) -> dict[str, tuple[TimelineEntry, ...]]:
    """Return every change of state of these jobs and what caused it, oldest first."""
    found: defaultdict[str, tuple[TimelineEntry, ...]] = defaultdict(tuple)
    for row in database.rows(TIMELINE, job_ids=list(job_ids)):
        found[row.job_id] += (TimelineEntry(row.at, row.state, row.cause, row.attempt, row.detail),)
    return found


def stored_artifact(row: Row[Any]) -> StoredArtifact:
    """Build the record from a row that has its columns."""
    index = row._mapping["index"]  # noqa: SLF001 - public in SQLAlchemy; `row.index` is the tuple's method
    return StoredArtifact(index, row.path, row.bytes, row.sha256, row.content_type, row.type)
