"""The counts behind `stats`, and what keeps alerts from repeating."""

from datetime import timedelta

from sqlalchemy import text

from shared.claims.postgres.database import Database
from shared.claims.records import Stats

# Reads the whole table: asked for by people and, at intervals, by metrics.
JOBS = text("""
    SELECT state, count(*) AS jobs, count(*) FILTER (WHERE deliveries > 1) AS redelivered,
        count(*) FILTER (WHERE conflict_with IS NOT NULL) AS conflicts,
        count(*) FILTER (WHERE attention = 2) AS unacknowledged
    FROM sume_jobs GROUP BY state
""")
WAITING = text(
    "SELECT reason, count(*) AS jobs FROM sume_jobs WHERE state = 'claimed' AND reason IS NOT NULL GROUP BY reason"
)
OLDEST = text("""
    SELECT greatest(0, coalesce(extract(epoch FROM max(now() - open_since)), 0))::float8 AS seconds
    FROM sume_jobs WHERE state = 'claimed' AND (not_before IS NULL OR not_before <= now())
""")
COUNTERS = text("SELECT name, count AS counted, last_at FROM sume_counters")
QUARANTINED = text("SELECT count(*) AS bodies FROM sume_quarantine WHERE replayed_at IS NULL")

# Alert now and forget how many were held back, or hold this one back and count it.
MAY_ALERT = text("""
    WITH before AS (
        SELECT held_back FROM sume_alerts WHERE kind = :kind AND subject = :subject
    ), alert AS (
        INSERT INTO sume_alerts AS a (kind, subject) VALUES (:kind, :subject)
        ON CONFLICT (kind, subject) DO UPDATE SET
            held_back = CASE WHEN a.sent_at <= now() - :every THEN 0 ELSE a.held_back + 1 END,
            sent_at = CASE WHEN a.sent_at <= now() - :every THEN now() ELSE a.sent_at END
        RETURNING held_back
    ) SELECT alert.held_back = 0 AS now, coalesce((SELECT held_back FROM before), 0) AS held_back FROM alert
""")


class Reporting:
    """Statistics and the AlertStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stats(self) -> Stats:
        """See OperatorStore.stats."""
        jobs = self._database.rows(JOBS)
        counters = {row.name: row for row in self._database.rows(COUNTERS)}
        oldest, quarantined = self._database.row(OLDEST), self._database.row(QUARANTINED)
        test = counters.get("webhook.test")
        return Stats(
            states={row.state: row.jobs for row in jobs},
            oldest_waiting_seconds=oldest.seconds if oldest else 0.0,
            redelivered=sum(row.redelivered for row in jobs),
            conflicts=sum(row.conflicts for row in jobs),
            quarantined=quarantined.bodies if quarantined else 0,
            unacknowledged=sum(row.unacknowledged for row in jobs),
            refused={
                name.removeprefix("refused:"): row.counted
                for name, row in counters.items()
                if name.startswith("refused:")
            },
            last_test_at=test.last_at if test else None,
            waiting={row.reason: row.jobs for row in self._database.rows(WAITING)},
        )

    def may_alert(self, kind: str, subject: str, *, every: timedelta) -> int | None:
        """See AlertStore.may_alert."""
        row = self._database.row(MAY_ALERT, kind=kind, subject=subject, every=every)
        return row.held_back if row is not None and row.now else None
