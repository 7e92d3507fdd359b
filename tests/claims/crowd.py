"""A claim store as it is after years: nearly everything is done, most of that is pruned, and little is open."""

from collections.abc import Mapping

import psycopg

# The past, the oldest first, as it came. A fifth is younger than the retention and keeps its details; one in fifty
# failed and was told of.
DONE = """
INSERT INTO sume_jobs (job_id, state, event, status, payload, source, first_seen, last_seen, deliveries, attempts,
    acknowledged_at, pruned_at, wake_at, claim_id, status_url, updated_at, open_since)
SELECT 'job_' || md5(n::text), 'done', CASE WHEN n %% 50 = 0 THEN 'job.failed' ELSE 'job.completed' END,
    CASE WHEN n %% 50 = 0 THEN 'ERROR' ELSE 'OK' END,
    CASE WHEN n <= %(kept)s THEN '{"job_id": "' || repeat(md5(n::text), 13) || '"}' END,
    'webhook', at, at, CASE WHEN n %% 100 = 7 THEN 2 ELSE 1 END, 1,
    CASE WHEN n %% 50 = 0 THEN at END, CASE WHEN n > %(kept)s THEN at + interval '30 days' END,
    NULL, gen_random_uuid(), 'https://api.open.sume.com/v1/jobs/' || n || '/status', at + interval '9 seconds', at
FROM generate_series(%(jobs)s, 1, -1) AS n, LATERAL (SELECT now() - interval '145 days' * n / %(jobs)s AS at) AS t
"""
ARTIFACTS = """
INSERT INTO sume_artifacts (job_id, index, path, bytes, sha256, content_type, type)
SELECT job_id, 0, job_id || '/0.png', 1000, repeat('a', 64), 'image/png', 'image'
FROM sume_jobs WHERE state = 'done' AND pruned_at IS NULL ORDER BY updated_at
"""
TIMELINE = """
INSERT INTO sume_timeline (job_id, at, state, cause, attempt)
SELECT job_id, updated_at, step.state, step.cause, 1
FROM sume_jobs, (VALUES ('running', 'lease taken'), ('done', 'finished')) AS step (state, cause)
WHERE sume_jobs.state = 'done' AND pruned_at IS NULL ORDER BY updated_at
"""

# The present: of every kind as many as `open` says, none of them due today.
OPEN = """
INSERT INTO sume_jobs (job_id, state, event, status, payload, source, first_seen, last_seen, deliveries, attempts,
    registered_at, wake_at, lease_token, lease_owner, reason, error, waits_for_host, updated_at, open_since)
SELECT 'job_' || kind || '_' || n, state, event, status,
    CASE WHEN event IS NOT NULL THEN '{"job_id": "' || repeat(md5(n::text), 13) || '"}' END,
    CASE WHEN event IS NOT NULL THEN 'webhook' END, CASE WHEN event IS NOT NULL THEN at END,
    CASE WHEN event IS NOT NULL THEN at END, CASE WHEN event IS NOT NULL THEN 1 ELSE 0 END, 1,
    CASE WHEN event IS NULL THEN at END,
    CASE WHEN state NOT IN ('done', 'dead') THEN now() + interval '1 day' + n * interval '1 second' END,
    CASE WHEN state = 'running' THEN gen_random_uuid() END, CASE WHEN state = 'running' THEN 'worker.' || n END,
    reason, reason || ': it failed', host, at, at
FROM (VALUES
    ('claimed', 'job.completed', 'OK', 1.0, NULL, NULL),
    ('claimed_error', 'job.failed', 'ERROR', 0.2, NULL, NULL),
    ('claimed_retry', 'job.completed', 'OK', 0.3, 'download_failed', NULL),
    ('claimed_host', 'job.completed', 'OK', 0.1, 'download_failed', 'media.example.com'),
    ('running', 'job.completed', 'OK', 0.2, NULL, NULL),
    ('expected', NULL, NULL, 0.5, NULL, NULL),
    ('dead', 'job.completed', 'OK', 0.2, 'integrity_failed', NULL),
    ('dead_poll', NULL, NULL, 0.1, 'poll_gave_up', NULL),
    ('done', 'job.failed', 'ERROR', 0.2, NULL, NULL)
) AS kinds (kind, event, status, share, reason, host),
    LATERAL split_part(kind, '_', 1) AS state,
    LATERAL generate_series(1, (%(open)s * share)::int) AS n,
    LATERAL (SELECT now() - interval '1 hour' - n * interval '1 second' AS at) AS t
"""
QUARANTINE = """
INSERT INTO sume_quarantine (reason, body, body_sha256, first_seen, last_seen, told_at, replayed_at)
SELECT 'unknown_event', convert_to('{"n": ' || n || '}', 'UTF8'), sha256(convert_to(n::text, 'UTF8')),
    at, at, at, CASE WHEN n %% 20 > 0 THEN at END
FROM generate_series(1, %(quarantined)s) AS n, LATERAL (SELECT now() - n * interval '1 minute' AS at) AS t
"""

# What costs more for each row than once for all of them.
INDEXES = """
SELECT format('DROP INDEX %I', relname), pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = 'sume_jobs'::regclass AND NOT indisprimary
"""
CONSTRAINTS = """
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
        || CASE contype WHEN 'p' THEN '' ELSE ' NOT VALID' END
FROM pg_constraint WHERE contype IN ('c', 'f', 'p') AND 'sume_jobs'::regclass IN (conrelid, confrelid)
ORDER BY contype
"""


def fill(database_url: str, *, done: int, opened: int) -> None:
    """Fill an empty store with `done` jobs of 145 days, about 2.6 `opened` others, and let PostgreSQL count them."""
    parameters: Mapping[str, int] = {"jobs": done, "kept": done // 5, "open": opened, "quarantined": done // 10}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # what refers to a job is made from it
        costly = [*connection.execute(INDEXES), *connection.execute(CONSTRAINTS)]
        for drop, _ in costly:  # the key last, as others refer to it
            connection.execute(drop.encode())
        for statement in (DONE, ARTIFACTS, TIMELINE, OPEN, QUARANTINE):
            connection.execute(statement.encode(), parameters)
        for _, restore in reversed(costly):
            connection.execute(restore.encode())
        connection.execute("VACUUM ANALYZE")
