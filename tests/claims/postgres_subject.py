"""PostgreSQL as the store under test."""

from datetime import timedelta

import psycopg

from shared.claims.postgres.store import PostgresStore
from tests.conformance.subject import STALE, Subject

AGE_JOBS = """UPDATE sume_jobs SET registered_at = registered_at - %(t)s, first_seen = first_seen - %(t)s,
    last_seen = last_seen - %(t)s, updated_at = updated_at - %(t)s, open_since = open_since - %(t)s,
    wake_at = wake_at - %(t)s, not_before = not_before - %(t)s, acknowledged_at = acknowledged_at - %(t)s,
    pruned_at = pruned_at - %(t)s"""
AGE_REST = (
    "UPDATE sume_timeline SET at = at - %(t)s",
    """UPDATE sume_hosts SET last_failure_at = last_failure_at - %(t)s, open_since = open_since - %(t)s,
        next_probe_at = next_probe_at - %(t)s""",
    "UPDATE sume_alerts SET sent_at = sent_at - %(t)s",
    "UPDATE sume_quarantine SET first_seen = first_seen - %(t)s, last_seen = last_seen - %(t)s",
    "UPDATE sume_counters SET last_at = last_at - %(t)s",
    "UPDATE sume_heartbeats SET last_at = last_at - %(t)s",
)
PLAIN_INSERT = """INSERT INTO sume_jobs
(job_id, event, status, payload) VALUES (%s, 'job.completed', 'OK', '{"event":"job.completed"}') ON CONFLICT (job_id)
DO UPDATE SET deliveries = sume_jobs.deliveries + 1"""


class PostgresSubject(Subject):
    """A store on a database of its own."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self.store = PostgresStore(database_url, stale=STALE)

    def let_pass(self, time: timedelta) -> None:
        """See Subject.let_pass."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            for statement in (AGE_JOBS, *AGE_REST):
                connection.execute(statement.encode(), {"t": time})

    def plain_insert(self, job_id: str) -> None:
        """See Subject.plain_insert."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(PLAIN_INSERT, (job_id,))
