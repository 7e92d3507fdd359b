"""Artifact hosts that fail for everybody, and the jobs that wait for them."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import text

from shared.claims.hosts import Circuit, ProbeTimes, Tended
from shared.claims.postgres.database import Database

# What nobody was told of for a day is no news: a host that fails now begins anew.
FORGET = text("DELETE FROM sume_hosts WHERE greatest(last_failure_at, next_probe_at) < now() - interval '1 day'")

# The back-off of the next probe, spread as all of ours.
BACK_OFF = "least(:longest, :first * power(2, least(h.probes, 20))) * (0.5 + random() / 2)"

# Count a failure; a job counts once, however often it fails. The probe's own failure ends it.
FAIL = text(f"""
    INSERT INTO sume_hosts AS h (host, failed_jobs) VALUES (:host, ARRAY[cast(:job_id AS text)])
    ON CONFLICT (host) DO UPDATE SET
        failures = h.failures + 1, last_failure_at = now(),
        failed_jobs = CASE
            WHEN :job_id = ANY(h.failed_jobs) OR cardinality(h.failed_jobs) >= :opens_after THEN h.failed_jobs
            ELSE h.failed_jobs || cast(:job_id AS text) END,
        next_probe_at = CASE WHEN h.probe_token = :token THEN now() + {BACK_OFF} ELSE h.next_probe_at END,
        prober = CASE WHEN h.probe_token = :token THEN NULL ELSE h.prober END,
        probe_token = CASE WHEN h.probe_token = :token THEN NULL ELSE h.probe_token END
""")  # noqa: S608 - built from the constant above
OPEN = text("""
    UPDATE sume_hosts SET open_since = now(), next_probe_at = now() + :first
    WHERE host = :host AND open_since IS NULL AND cardinality(failed_jobs) >= :opens_after
""")
WORKED = text("DELETE FROM sume_hosts WHERE host = :host RETURNING open_since IS NOT NULL AS was_open")

# Whether the job that probes a host still works on it.
PROBED_NOW = """EXISTS (SELECT 1 FROM sume_jobs p
    WHERE p.job_id = h.prober AND p.state = 'running' AND p.lease_token = h.probe_token)"""

TAKE_PROBE = text(f"""
    UPDATE sume_hosts AS h SET prober = :job_id, probe_token = :token, probes = probes + 1,
        next_probe_at = now() + {BACK_OFF}
    WHERE host = :host AND open_since IS NOT NULL AND (
        probe_token = :token OR (prober = :job_id AND probe_token IS NULL)
        OR (next_probe_at <= now() AND NOT {PROBED_NOW}))
""")  # noqa: S608 - built from the constants above
NEXT_PROBE = text("""
    SELECT greatest(next_probe_at - now(), interval '1 second') AS wait FROM sume_hosts
    WHERE host = :host AND open_since IS NOT NULL
""")

# One waiting job for each host that may be probed, the one that was tried least, becomes due.
CALL = text(f"""
    WITH chosen AS (
        SELECT h.host, (
            SELECT j.job_id FROM sume_jobs j WHERE j.waits_for_host = h.host AND j.state = 'claimed'
            ORDER BY j.attempts, j.wake_at, j.job_id LIMIT 1
        ) AS job_id FROM sume_hosts h WHERE h.next_probe_at <= now()
    ), called AS (
        UPDATE sume_hosts AS h SET prober = chosen.job_id, probe_token = NULL, next_probe_at = now() + :within
        FROM chosen
        WHERE h.host = chosen.host AND chosen.job_id IS NOT NULL AND h.next_probe_at <= now() AND NOT {PROBED_NOW}
        RETURNING chosen.job_id
    ) UPDATE sume_jobs SET wake_at = now(), not_before = NULL
    WHERE state = 'claimed' AND job_id IN (SELECT job_id FROM called)
""")  # noqa: S608 - built from the constant above

FREE = text("""
    UPDATE sume_jobs SET waits_for_host = NULL, wake_at = now() + random() * :spread, not_before = NULL
    WHERE job_id = ANY(ARRAY(
        SELECT j.job_id FROM sume_jobs j
        WHERE j.waits_for_host IS NOT NULL AND j.state = 'claimed' AND NOT EXISTS (
            SELECT 1 FROM sume_hosts h WHERE h.host = j.waits_for_host AND h.open_since IS NOT NULL)
        FOR UPDATE OF j SKIP LOCKED LIMIT :limit))
""")

# Those that would soon be due although their host is still down; a minute ahead of the sweep.
KEEP = text("""
    UPDATE sume_jobs AS j SET wake_at = kept.at, not_before = kept.at FROM (
        SELECT w.job_id, now() + :again * (0.5 + random() / 2) AS at
        FROM sume_jobs w JOIN sume_hosts h ON h.host = w.waits_for_host
        WHERE w.waits_for_host IS NOT NULL AND w.state = 'claimed' AND h.open_since IS NOT NULL
            AND w.wake_at <= now() + least(:again / 4, interval '1 minute') AND h.prober IS DISTINCT FROM w.job_id
        FOR UPDATE OF w SKIP LOCKED LIMIT :limit
    ) AS kept WHERE j.job_id = kept.job_id
""")

CIRCUITS = text("""
    SELECT h.host, h.failures, h.open_since, h.next_probe_at,
        (SELECT count(*) FROM sume_jobs j WHERE j.waits_for_host = h.host) AS waiting
    FROM sume_hosts h WHERE h.open_since IS NOT NULL ORDER BY h.open_since
""")


class Hosts:
    """The HostStore and the CircuitStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def host_failed(self, host: str, *, job_id: str, token: UUID, opens_after: int, times: ProbeTimes) -> bool:
        """See HostStore.host_failed."""
        self._database.changed(FORGET)
        self._database.changed(
            FAIL,
            host=host,
            job_id=job_id,
            token=token,
            opens_after=opens_after,
            first=times.first,
            longest=times.longest,
        )
        return self._database.changed(OPEN, host=host, opens_after=opens_after, first=times.first) == 1

    def host_worked(self, host: str) -> bool:
        """See HostStore.host_worked."""
        row = self._database.row(WORKED, host=host)
        return row is not None and bool(row.was_open)

    def take_probe(self, host: str, *, job_id: str, token: UUID, times: ProbeTimes) -> timedelta | None:
        """See HostStore.take_probe."""
        taken = self._database.changed(
            TAKE_PROBE, host=host, job_id=job_id, token=token, first=times.first, longest=times.longest
        )
        row = None if taken else self._database.row(NEXT_PROBE, host=host)
        return None if row is None else row.wait

    def tend_circuits(self, *, within: timedelta, again: timedelta, spread: timedelta, limit: int) -> Tended:
        """See CircuitStore.tend_circuits."""
        self._database.changed(FORGET)
        called = self._database.changed(CALL, within=within)
        freed = 0
        while (changed := self._database.changed(FREE, spread=spread, limit=limit)) > 0:
            freed += changed
        while self._database.changed(KEEP, again=again, limit=limit) == limit:
            pass
        return Tended(called, freed)


def open_circuits(database: Database) -> tuple[Circuit, ...]:
    """Return every open circuit, the oldest first."""
    return tuple(Circuit(**row._mapping) for row in database.rows(CIRCUITS))  # noqa: SLF001 - public in SQLAlchemy
