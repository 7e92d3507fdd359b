"""What the database says about itself, for the doctor."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from shared.claims.postgres.claiming import SCHEMA_VERSION
from shared.claims.postgres.database import Database

PATIENCE = timedelta(seconds=5)

SERVER = text("""
    SELECT current_setting('server_version') AS version, clock_timestamp() AS clock,
        pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
        to_regclass('sume_jobs_version') IS NOT NULL AS migrated
""")
VERSION = text("SELECT version_num FROM sume_jobs_version")


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """A database that answered."""

    server: str
    read_only: bool
    clock: datetime
    schema: str | None
    """Version of our schema there; None before the first `migrate`."""
    wanted_schema: str
    """The version that this code works with."""


def read_facts(database_url: str) -> DatabaseFacts:
    """Ask a database about itself; raises StoreUnavailableError within a few seconds when it is away."""
    milliseconds = int(PATIENCE / timedelta(milliseconds=1))
    database = Database(database_url, statement_timeout_ms=milliseconds, lock_timeout_ms=milliseconds, pool_size=1)
    try:
        [server] = database.rows(SERVER)
        version = database.row(VERSION) if server.migrated else None
    finally:
        database.close()
    schema = version.version_num if version is not None else None
    return DatabaseFacts(server.version, server.read_only, server.clock, schema, SCHEMA_VERSION)
