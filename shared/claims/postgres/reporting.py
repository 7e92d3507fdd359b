"""The counts behind `stats`."""

from sqlalchemy import text

from shared.claims.postgres.database import Database
from shared.claims.postgres.hosts import open_circuits
from shared.claims.records import Stats

# Reads the whole table, as `deliveries` can be in no index: asked for by people and, at intervals, by metrics. Three
# million jobs take 0.8 s from memory; what else is counted goes through the indexes of open jobs.
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
COUNTERS = text("SELECT name, count AS counted, last_at, detail FROM sume_counters")
QUARANTINED = text("SELECT count(*) AS bodies FROM sume_quarantine WHERE replayed_at IS NULL")
SEEN = text("""
    SELECT role, max(last_at) AS last_at, count(*) FILTER (WHERE last_at > now() - interval '1 minute') AS alive
    FROM sume_heartbeats GROUP BY role
""")


class Reporting:
    """Statistics on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stats(self) -> Stats:
        """See OperatorStore.stats."""
        jobs = self._database.rows(JOBS)
        counters = {row.name: row for row in self._database.rows(COUNTERS)}
        oldest, quarantined = self._database.row(OLDEST), self._database.row(QUARANTINED)
        test, accepted = counters.get("webhook.test"), counters.get("accepted")
        refused = {name.removeprefix("refused:"): row for name, row in counters.items() if name.startswith("refused:")}
        seen = self._database.rows(SEEN)
        return Stats(
            states={row.state: row.jobs for row in jobs},
            oldest_waiting_seconds=oldest.seconds if oldest else 0.0,
            redelivered=sum(row.redelivered for row in jobs),
            conflicts=sum(row.conflicts for row in jobs),
            quarantined=quarantined.bodies if quarantined else 0,
            unacknowledged=sum(row.unacknowledged for row in jobs),
            refused={code: row.counted for code, row in refused.items()},
            refused_headers={code: tuple(row.detail.split(", ")) for code, row in refused.items() if row.detail},
            last_accepted_at=accepted.last_at if accepted else None,
            last_test_at=test.last_at if test else None,
            secrets_used={
                name.removeprefix("secret:"): row.last_at
                for name, row in counters.items()
                if name.startswith("secret:")
            },
            last_seen={row.role: row.last_at for row in seen},
            alive={row.role: row.alive for row in seen},
            waiting={row.reason: row.jobs for row in self._database.rows(WAITING)},
            circuits=open_circuits(self._database),
        )
