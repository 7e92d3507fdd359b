"""The schema's version: creating it, upgrading it, and saying which one the code needs."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import text
from sqlalchemy.engine import Connection

from shared.claims.postgres.database import Database
from shared.errors import StoreUnavailableError

VERSION_TABLE = "sume_jobs_version"
LOCK_KEY = 0x53756D65  # "Sume": one migration at a time in a database

SERVER_ENCODING = text("SELECT current_setting('server_encoding')")
LOCK = text("SELECT pg_advisory_lock(:key)")
UNLOCK = text("SELECT pg_advisory_unlock(:key)")
EXISTS = text("SELECT to_regclass(:name) IS NOT NULL")


def migrate(database_url: str) -> None:
    """Create or upgrade the schema; several may run at once, and every start may run it again.

    Touches nothing without our prefix. Raises StoreUnavailableError when the database is away, is not UTF8, or
    holds a `sume_jobs` table that this command did not make.
    """
    database = Database(database_url, statement_timeout_ms=0, lock_timeout_ms=30_000, pool_size=1)
    try:
        with database.connection() as lock, database.transactions() as connection:
            encoding = lock.execute(SERVER_ENCODING).scalar_one()
            if encoding != "UTF8":
                raise StoreUnavailableError(
                    f"the database's encoding is {encoding}, and bodies are kept as UTF8 text; create a UTF8 database"
                )
            lock.execute(LOCK, {"key": LOCK_KEY})
            try:
                refuse_foreign_table(lock)
                upgrade(connection)
            finally:
                lock.execute(UNLOCK, {"key": LOCK_KEY})
    finally:
        database.close()


def refuse_foreign_table(connection: Connection) -> None:
    """Raise when `sume_jobs` exists without our version table beside it."""
    versioned, jobs = (connection.execute(EXISTS, {"name": n}).scalar_one() for n in (VERSION_TABLE, "sume_jobs"))
    if jobs and not versioned:
        raise StoreUnavailableError(
            f"the database has a table sume_jobs that this command did not make (there is no {VERSION_TABLE}); "
            "nothing was changed: rename that table, or use another database or schema"
        )


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, each in a transaction of its own."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreUnavailableError(
            "the schema was made by a newer release than this one; run that release, or restore an older backup"
        ) from error
