"""Reading what is known of a job's published files."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Row

from shared.claims.postgres.database import Database
from shared.event import StoredArtifact

# The files of one job, in Sume's order.
ARTIFACTS = text("""
    SELECT index, path, bytes, sha256, content_type, type FROM sume_artifacts WHERE job_id = :job_id ORDER BY index
""")


def stored_artifacts(database: Database, job_id: str) -> tuple[StoredArtifact, ...]:
    """Return the files that attempts at this job published."""
    return tuple(stored_artifact(row) for row in database.rows(ARTIFACTS, job_id=job_id))


def stored_artifact(row: Row[Any]) -> StoredArtifact:
    """Build the record from a row that has its columns."""
    index = row._mapping["index"]  # noqa: SLF001 - public in SQLAlchemy; `row.index` is the tuple's method
    return StoredArtifact(index, row.path, row.bytes, row.sha256, row.content_type, row.type)
