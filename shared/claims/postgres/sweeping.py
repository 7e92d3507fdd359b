"""What the scheduler repairs: lost leases, overdue claims, due polls, expired details."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from shared.claims.postgres.database import Database
from shared.claims.postgres.timeline import noted
from shared.claims.records import ExpectedJob, Message, Pruned

# Running jobs whose lease ran out. SKIP LOCKED: any number of schedulers share the rows, none takes one twice.
LOSE = noted(
    """
    UPDATE sume_jobs SET state = 'claimed', lease_token = NULL, wake_at = now(), updated_at = now(),
        strikes = strikes + 1, reason = 'worker_lost', error = 'the lease of ' || lease_owner || ' ran out'
    WHERE job_id = ANY(ARRAY(
        SELECT job_id FROM sume_jobs WHERE state = 'running' AND wake_at <= now()
        FOR UPDATE SKIP LOCKED LIMIT :limit))
    RETURNING job_id, state, attempts, reason, error
    """,
    cause="lease lost",
    detail="concat_ws(': ', reason, error)",
)

# Claimed jobs whose time has come, of one status; no change of state, so nothing is noted.
OVERDUE = text("""
    UPDATE sume_jobs SET wake_at = now() + :stale
    WHERE job_id = ANY(ARRAY(
        SELECT job_id FROM sume_jobs WHERE state = 'claimed' AND status = :status AND wake_at <= now()
        ORDER BY wake_at FOR UPDATE SKIP LOCKED LIMIT :limit))
    RETURNING job_id, event, status, attempts
""")

# Expected jobs to ask for, each put off by its own back-off before it is asked.
DUE_POLLS = text("""
    UPDATE sume_jobs SET polls = polls + 1,
        wake_at = now() + least(:maximum, :interval * power(2, least(polls, 20)))
    WHERE job_id = ANY(ARRAY(
        SELECT job_id FROM sume_jobs WHERE state = 'expected' AND wake_at <= now()
        ORDER BY wake_at FOR UPDATE SKIP LOCKED LIMIT :limit))
    RETURNING job_id, status_url, polls, now() - open_since AS expected_for
""")

POSTPONE = text("UPDATE sume_jobs SET wake_at = now() + :wait WHERE job_id = :job_id AND state = 'expected'")

# Which of these leases are held; through the index of running jobs, which are few.
LIVE_TOKENS = text("""
    SELECT lease_token FROM sume_jobs WHERE state = 'running' AND lease_token = ANY(cast(:tokens AS uuid[]))
""")

# Details past retention. An ERROR job nobody was told of is kept for a person. In the words of its own index: asked for
# `attention = 0`, PostgreSQL walks the index of the list through all that was ever pruned.
PRUNABLE = """
    SELECT job_id FROM sume_jobs
    WHERE state = 'done' AND pruned_at IS NULL AND (status = 'OK' OR acknowledged_at IS NOT NULL)
        AND updated_at <= now() - :older_than
    ORDER BY updated_at
"""
PRUNE = text(f"""
    WITH pruned AS (
        UPDATE sume_jobs SET pruned_at = now(), payload = NULL
        WHERE job_id = ANY(ARRAY({PRUNABLE} FOR UPDATE SKIP LOCKED LIMIT :limit)) RETURNING job_id
    ), artifacts AS (
        DELETE FROM sume_artifacts a USING pruned WHERE a.job_id = pruned.job_id
    ), timeline AS (
        DELETE FROM sume_timeline t USING pruned WHERE t.job_id = pruned.job_id
    ) SELECT count(*) FROM pruned
""")  # noqa: S608 - built from the constant above
COUNT_PRUNABLE = text(f"SELECT count(*) FROM ({PRUNABLE} LIMIT :limit) AS prunable")  # noqa: S608 - the same

REPLAYED = """
    SELECT id FROM sume_quarantine WHERE replayed_at IS NOT NULL AND last_seen <= now() - :older_than
    ORDER BY last_seen LIMIT :limit
"""
PRUNE_QUARANTINE = text(f"DELETE FROM sume_quarantine WHERE id = ANY(ARRAY({REPLAYED}))")  # noqa: S608 - the same
COUNT_PRUNABLE_QUARANTINE = text(f"SELECT count(*) FROM ({REPLAYED}) AS prunable")  # noqa: S608 - the same


class Sweeping:
    """The SweepStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lose_leases(self, *, limit: int) -> list[str]:
        """See SweepStore.lose_leases."""
        return [row.job_id for row in self._database.rows(LOSE, limit=limit)]

    def overdue_claims(self, *, limit: int, stale: timedelta) -> list[Message]:
        """See SweepStore.overdue_claims."""
        messages: list[Message] = []
        for status in ("ERROR", "OK"):
            rows = self._database.rows(OVERDUE, limit=limit - len(messages), stale=stale, status=status)
            messages += [Message(row.job_id, row.event, row.status, row.attempts + 1) for row in rows]
        return messages

    def due_polls(self, *, limit: int, interval: timedelta, maximum: timedelta) -> list[ExpectedJob]:
        """See SweepStore.due_polls."""
        rows = self._database.rows(DUE_POLLS, limit=limit, interval=interval, maximum=maximum)
        return [ExpectedJob(row.job_id, row.status_url, row.polls, row.expected_for) for row in rows]

    def postpone_poll(self, job_id: str, *, wait: timedelta) -> None:
        """See SweepStore.postpone_poll."""
        self._database.changed(POSTPONE, job_id=job_id, wait=wait)

    def live_tokens(self, tokens: Collection[UUID]) -> set[UUID]:
        """See SweepStore.live_tokens."""
        return {row.lease_token for row in self._database.rows(LIVE_TOKENS, tokens=list(tokens))}

    def prune(self, *, older_than: timedelta, limit: int, dry_run: bool) -> Pruned:
        """See SweepStore.prune."""
        jobs = self._database.row(COUNT_PRUNABLE if dry_run else PRUNE, older_than=older_than, limit=limit)
        if dry_run:
            replayed = self._database.row(COUNT_PRUNABLE_QUARANTINE, older_than=older_than, limit=limit)
            quarantine = replayed[0] if replayed else 0
        else:
            quarantine = last = self._database.changed(PRUNE_QUARANTINE, older_than=older_than, limit=limit)
            while last == limit:  # a caller's loop ends with the jobs
                last = self._database.changed(PRUNE_QUARANTINE, older_than=older_than, limit=limit)
                quarantine += last
        return Pruned(jobs=jobs[0] if jobs else 0, quarantine=quarantine)
