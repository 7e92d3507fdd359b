"""What people ask and change: list, show, requeue, statistics, audit."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Row

from shared.claims.cursor import read_cursor, write_cursor
from shared.claims.postgres.database import Database
from shared.claims.postgres.details import stored_artifact, stored_artifacts, timelines
from shared.claims.postgres.timeline import noted
from shared.claims.records import (
    AuditRecord,
    JobFilter,
    JobPage,
    JobRecord,
    Message,
    Requeued,
    TimelineEntry,
)
from shared.claims.states import Reason, State
from shared.event import StoredArtifact

JOB_COLUMNS = """job_id, state, event, status, deliveries, attempts, source, conflict_with IS NOT NULL AS conflict,
    conflict_with, coalesce(error, event_error) AS error, reason, status_url, first_seen, last_seen, updated_at,
    coalesce((SELECT h.next_probe_at FROM sume_hosts h WHERE h.host = waits_for_host), wake_at) AS next_look_at,
    acknowledged_at, pruned_at"""

SHOW = text(f"SELECT {JOB_COLUMNS} FROM sume_jobs WHERE job_id = :job_id")  # noqa: S608 - built from the constant above

DEAD = text("""
    SELECT job_id FROM sume_jobs WHERE state = 'dead' AND attention IN (1, 2)
        AND (cast(:reason AS text) IS NULL OR reason = :reason)
        AND (cast(:since AS interval) IS NULL OR updated_at >= now() - cast(:since AS interval))
    ORDER BY updated_at
""")

# Reopen a dead job, or with force a done one that still has its payload. Without an event it is expected again.
REQUEUE = noted(
    """
    UPDATE sume_jobs SET state = CASE WHEN event IS NULL THEN 'expected' ELSE 'claimed' END,
        wake_at = CASE WHEN event IS NULL THEN now() ELSE now() + :stale END, not_before = NULL,
        attempts = 0, strikes = 0, polls = 0, reason = NULL, error = NULL, open_since = now(), updated_at = now()
    WHERE job_id = :job_id AND (state = 'dead' OR (:force AND state = 'done' AND pruned_at IS NULL))
    RETURNING job_id, state, attempts, event, status
    """,
    cause="requeued",
)

STATE = text("SELECT state, pruned_at IS NOT NULL AS pruned FROM sume_jobs WHERE job_id = :job_id")

# The audit's next page. LATERAL, so that each page reads its own files by their key and not the whole table.
AUDIT = text("""
    WITH page AS (
        SELECT job_id, state, status, reason, pruned_at IS NOT NULL AS pruned FROM sume_jobs
        WHERE event IS NOT NULL AND job_id > :after ORDER BY job_id LIMIT :limit
    ) SELECT page.*, a.index, a.path, a.bytes, a.sha256, a.content_type, a.type
    FROM page LEFT JOIN LATERAL (
        SELECT * FROM sume_artifacts WHERE sume_artifacts.job_id = page.job_id ORDER BY index
    ) AS a ON true ORDER BY page.job_id, a.index
""")

# Where `list` looks for each state. OFFSET 0 has the few open ones found through their own index and then sorted: what
# remains after a cursor PostgreSQL takes for one row, and would look for it through all that is done.
CONDITIONS: Mapping[State | None, str] = {
    None: "true",
    "expected": "state = 'expected' OFFSET 0",
    "claimed": "state = 'claimed' OFFSET 0",
    "running": "state = 'running' OFFSET 0",
    "done": "state = 'done'",
    "dead": "state = 'dead' AND attention >= 1",
}


class Operating:
    """The OperatorStore on PostgreSQL, statistics apart."""

    def __init__(self, database: Database, *, stale: timedelta) -> None:
        self._database = database
        self._stale = stale

    def list_jobs(self, wanted: JobFilter) -> JobPage:
        """See OperatorStore.list_jobs; raises UsageError for a cursor this did not give."""
        clauses = ["true"]
        parameters: dict[str, object] = {"limit": wanted.limit + 1}
        if wanted.status is not None:
            clauses.append("status = :status")
            parameters["status"] = wanted.status
        if wanted.redelivered:
            clauses.append("deliveries > 1")
        if wanted.cursor is not None:
            clauses.append("(attention, updated_at, job_id) < (:attention, :updated_at, :job_id)")
            parameters |= read_cursor(wanted.cursor)
        jobs = f"(SELECT * FROM sume_jobs WHERE {CONDITIONS[wanted.state]}) AS jobs"  # noqa: S608 - constants
        rows = self._database.rows(
            text(
                f"SELECT {JOB_COLUMNS}, attention FROM {jobs} WHERE {' AND '.join(clauses)} "  # noqa: S608 - the same
                "ORDER BY attention DESC, updated_at DESC, job_id DESC LIMIT :limit"
            ),
            **parameters,
        )
        page, more = rows[: wanted.limit], len(rows) > wanted.limit
        last = page[-1] if more else None
        cursor = last and write_cursor(attention=last.attention, updated_at=last.updated_at, job_id=last.job_id)
        return JobPage(self._records(page), cursor)

    def get_job(self, job_id: str) -> JobRecord | None:
        """See OperatorStore.get_job."""
        records = self._records(self._database.rows(SHOW, job_id=job_id))
        return records[0] if records else None

    def _records(self, rows: Sequence[Row[Any]]) -> tuple[JobRecord, ...]:
        """Build whole records from rows of JOB_COLUMNS."""
        job_ids = [row.job_id for row in rows]
        if not job_ids:
            return ()
        artifacts, changes = stored_artifacts(self._database, job_ids), timelines(self._database, job_ids)
        return tuple(job_record(row, artifacts[row.job_id], changes[row.job_id]) for row in rows)

    def dead_job_ids(self, *, reason: Reason | None, since: timedelta | None) -> list[str]:
        """See OperatorStore.dead_job_ids."""
        value = reason.value if reason else None
        return [row.job_id for row in self._database.rows(DEAD, reason=value, since=since)]

    def requeue(self, job_id: str, *, force: bool) -> Requeued:
        """See OperatorStore.requeue."""
        found = self._database.row(STATE, job_id=job_id)
        if found is None:
            return Requeued("unknown")
        row = self._database.row(REQUEUE, job_id=job_id, force=force, stale=self._stale)
        if row is None:
            return Requeued("pruned" if found.pruned and force else "not_dead", found.state)
        if row.state == "expected":
            return Requeued("expected", found.state)
        return Requeued("requeued", found.state, Message(job_id, row.event, row.status, 1))

    def audit(self) -> Iterator[AuditRecord]:
        """See OperatorStore.audit."""
        after = ""
        while rows := self._database.rows(AUDIT, after=after, limit=1_000):
            for job_id, group in groupby(rows, key=lambda row: row.job_id):
                lines = list(group)
                first = lines[0]
                artifacts = tuple(stored_artifact(line) for line in lines if line.path is not None)
                yield AuditRecord(job_id, first.state, first.status, first.reason, first.pruned, artifacts)
                after = job_id


def job_record(row: Row[Any], artifacts: tuple[StoredArtifact, ...], timeline: tuple[TimelineEntry, ...]) -> JobRecord:
    """Build the record from a row of JOB_COLUMNS."""
    facts = {name: value for name, value in row._mapping.items() if name != "attention"}  # noqa: SLF001 - public in SQLAlchemy
    return JobRecord(**facts, artifacts=artifacts, timeline=timeline)
