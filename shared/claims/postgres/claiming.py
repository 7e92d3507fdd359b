"""Claiming jobs, and what else a receiver writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, cast
from uuid import uuid4

from psycopg.pq.abc import PGresult
from sqlalchemy import text

from shared.claims.postgres.database import Database
from shared.claims.postgres.prepared import BINARY, TEXT, Prepared, int_array, text_array
from shared.claims.records import Claim, ClaimResult
from shared.errors import StoreUnavailableError
from shared.event import Event, Status

# The claim. Whoever's claim_id stands in the row afterwards was first: `xmax = 0` would call a row that was only
# expected a duplicate. One id serves a whole batch, in which each job stands once. Every event column is set only
# while there is no event, so a duplicate counts and no more, and as it touches no indexed column it stays a HOT
# update. Parameters are arrays: one statement a batch, prepared once.
CLAIM = """
INSERT INTO sume_jobs AS j (job_id, event, status, payload, source, status_url, event_error, conflict_with,
                            deliveries, claim_id, wake_at)
SELECT c.*, $1::uuid, now() + $2::interval FROM unnest(
    $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::int4[]
) AS c
ON CONFLICT (job_id) DO UPDATE SET
    deliveries = j.deliveries + excluded.deliveries,
    last_seen = excluded.last_seen,
    state = CASE WHEN j.event IS NULL THEN 'claimed' ELSE j.state END,
    status = coalesce(j.status, excluded.status),
    payload = CASE WHEN j.event IS NULL THEN excluded.payload ELSE j.payload END,
    source = coalesce(j.source, excluded.source),
    status_url = coalesce(j.status_url, excluded.status_url),
    event_error = CASE WHEN j.event IS NULL THEN excluded.event_error ELSE j.event_error END,
    conflict_with = CASE
        WHEN j.event IS NULL THEN excluded.conflict_with
        WHEN j.conflict_with IS NOT NULL THEN j.conflict_with
        WHEN j.event <> excluded.event THEN excluded.event
        WHEN j.status <> excluded.status THEN 'status ' || excluded.status
        ELSE excluded.conflict_with END,
    claim_id = CASE WHEN j.event IS NULL THEN excluded.claim_id ELSE j.claim_id END,
    first_seen = coalesce(j.first_seen, excluded.first_seen),
    updated_at = CASE WHEN j.event IS NULL THEN excluded.updated_at ELSE j.updated_at END,
    open_since = CASE WHEN j.event IS NULL THEN excluded.open_since ELSE j.open_since END,
    wake_at = CASE WHEN j.event IS NULL THEN excluded.wake_at ELSE j.wake_at END,
    reason = CASE WHEN j.event IS NULL THEN NULL ELSE j.reason END,
    error = CASE WHEN j.event IS NULL THEN NULL ELSE j.error END,
    event = coalesce(j.event, excluded.event)
RETURNING j.job_id, j.claim_id IS NOT DISTINCT FROM $1::uuid, j.event, j.status, j.deliveries
"""

# Register a job whose event has not come; a job that is known stays as it is.
EXPECT = text("""
    INSERT INTO sume_jobs (job_id, state, deliveries, source, registered_at, first_seen, last_seen, status_url, wake_at)
    VALUES (:job_id, 'expected', 0, NULL, now(), NULL, NULL, :status_url, now() + :due_in)
    ON CONFLICT (job_id) DO NOTHING
""")

# Add up the counters that receivers keep in memory; sorted names keep two receivers from a deadlock.
COUNT = text("""
    INSERT INTO sume_counters AS c (name, count, detail)
    SELECT * FROM unnest(cast(:names AS text[]), cast(:counts AS bigint[]), cast(:details AS text[]))
    ON CONFLICT (name) DO UPDATE SET
        count = c.count + excluded.count, last_at = now(), detail = coalesce(excluded.detail, c.detail)
""")

# Whether a claim could be stored now.
WRITABLE = text("""
    SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
           (SELECT count(*) FROM sume_jobs_version WHERE version_num = :version) AS migrated
""")

# Changes no row, but waits for every lock that a claim would wait for.
TOUCH = text("UPDATE sume_jobs SET deliveries = deliveries WHERE job_id = ''")

SCHEMA_VERSION = "0001"
CLAIM_PREPARED = Prepared("claim", CLAIM)
FORMATS = (BINARY, TEXT, *[BINARY] * 9)
TRUE = b"\x01"


@dataclass(slots=True)
class Fold:
    """All claims of a batch for one job_id: the first is claimed, the others count."""

    first: Event
    deliveries: int = 0
    conflict: str | None = None

    def add(self, event: Event) -> None:
        """Count one more claim of the same job."""
        self.deliveries += event.source == "webhook"
        if self.conflict is None:
            self.conflict = event.conflict
            if event.name != self.first.name:
                self.conflict = event.name
            elif event.status != self.first.status:
                self.conflict = f"status {event.status}"


class Kept(NamedTuple):
    """What stands in a row after a claim."""

    first: bool
    """This claim's event is the one that is kept."""
    event: str
    status: Status
    deliveries: int


def read(result: PGresult, row: int) -> tuple[str, Kept]:
    """Return the job_id of one row that CLAIM returns, and what is kept there."""
    job_id, first, event, status, deliveries = (result.get_value(row, column) or b"" for column in range(5))
    kept = Kept(first == TRUE, event.decode(), cast("Status", status.decode()), int.from_bytes(deliveries, "big"))
    return job_id.decode(), kept


class Batch:
    """Claims of one statement: its values in the order of their keys, so that two batches cannot deadlock."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = claims
        self._folds: dict[str, Fold] = {}
        for claim in claims:
            fold = self._folds.setdefault(claim.event.job_id, Fold(claim.event))
            fold.add(claim.event)

    def values(self, *, stale: timedelta) -> Sequence[bytes]:
        """Return the values of CLAIM; raises UnicodeEncodeError for what is no text."""
        folds = [self._folds[job_id] for job_id in sorted(self._folds)]
        events = [fold.first for fold in folds]
        return (
            uuid4().bytes,
            f"{stale.total_seconds()} seconds".encode(),
            text_array([event.job_id for event in events]),
            text_array([event.name for event in events]),
            text_array([event.status for event in events]),
            text_array([event.payload for event in events]),
            text_array([event.source for event in events]),
            text_array([event.status_url for event in events]),
            text_array([event.error for event in events]),
            text_array([fold.conflict for fold in folds]),
            int_array([fold.deliveries for fold in folds]),
        )

    def results(self, rows: PGresult) -> list[ClaimResult]:
        """Return what became of each claim, in the order given."""
        kept = dict(read(rows, row) for row in range(rows.ntuples))
        return [self._result(claim.event, kept[claim.event.job_id]) for claim in self._claims]

    def _result(self, event: Event, kept: Kept) -> ClaimResult:
        return ClaimResult(
            job_id=event.job_id,
            new=kept.first and event is self._folds[event.job_id].first,
            event=kept.event,
            status=kept.status,
            deliveries=kept.deliveries,
            conflict=event.conflict is not None or (event.name, event.status) != (kept.event, kept.status),
        )


class Claiming:
    """The ReceivingStore on PostgreSQL."""

    def __init__(self, database: Database, *, stale: timedelta) -> None:
        self._database = database
        self._stale = stale

    def claim_many(self, claims: Sequence[Claim]) -> list[ClaimResult]:
        """See ReceivingStore.claim_many."""
        if not claims:
            return []
        batch = Batch(claims)
        values = batch.values(stale=self._stale)
        with self._database.driver_connection() as connection:
            return batch.results(CLAIM_PREPARED.run(connection, values, formats=FORMATS))

    def expect(self, job_id: str, *, status_url: str | None, due_in: timedelta) -> bool:
        """See ReceivingStore.expect."""
        return self._database.changed(EXPECT, job_id=job_id, status_url=status_url, due_in=due_in) == 1

    def count(self, counts: Mapping[str, int], *, details: Mapping[str, str]) -> None:
        """See ReceivingStore.count."""
        names = sorted(counts)
        if names:
            self._database.changed(
                COUNT,
                names=names,
                counts=[counts[name] for name in names],
                details=[details.get(name) for name in names],
            )

    def check(self) -> None:
        """See ReceivingStore.check."""
        row = self._database.row(WRITABLE, version=SCHEMA_VERSION)
        if row is None or row.read_only:
            raise StoreUnavailableError("PostgreSQL is read-only (a standby?)", reachable=True)
        if not row.migrated:
            raise StoreUnavailableError("the schema is of another version; run `sume-jobs migrate`", reachable=True)
        self._database.changed(TOUCH)

    def interrupt(self) -> None:
        """See ReceivingStore.interrupt."""
        self._database.interrupt()
