"""Jobs that have waited for long, by what they wait for."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import text

from shared.claims.postgres.database import Database
from shared.claims.states import Reason
from shared.claims.waits import LongWait

# Through the index of claimed jobs: no other is read.
LONG_WAITS = text("""
    SELECT reason, count(*) AS jobs, now() - min(open_since) AS longest,
        (array_agg(job_id ORDER BY open_since, job_id))[1] AS job_id
    FROM sume_jobs
    WHERE state = 'claimed' AND waits_for_host IS NULL
        AND reason = ANY(cast(:reasons AS text[])) AND open_since <= now() - :longer_than
    GROUP BY reason ORDER BY reason
""")


class Waits:
    """The WaitStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def long_waits(self, reasons: Collection[Reason], *, longer_than: timedelta) -> list[LongWait]:
        """See WaitStore.long_waits."""
        rows = self._database.rows(LONG_WAITS, reasons=[reason.value for reason in reasons], longer_than=longer_than)
        return [LongWait(Reason(row.reason), row.jobs, row.longest, row.job_id) for row in rows]
