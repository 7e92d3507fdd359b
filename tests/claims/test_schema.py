"""The schema: migrated safely, refused safely, and cheap where it must be."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import shared.claims
from shared.claims.postgres.claiming import SCHEMA_VERSION
from shared.claims.postgres.store import PostgresStore
from shared.claims.schema import migrate
from shared.claims.states import STATES
from shared.errors import StoreUnavailableError
from shared.event import EVENT_NAMES
from shared.sandbox.postgres import Postgres
from tests.claims.postgres_subject import PostgresSubject
from tests.conftest import run_sql

TABLES = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
HOT = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sume_jobs'"


def query(database_url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_migrating_twice_at_once_and_again_is_safe(empty_database_url: str) -> None:
    """Every start may run it."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, [empty_database_url] * 4))
    migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url, stale=timedelta(1))) as store:
        store.check()


def test_a_foreign_table_of_our_name_is_refused_untouched(empty_database_url: str) -> None:
    """The error says what to do, and neither that table nor any other is changed."""
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE sume_jobs (mine int)")
        connection.execute("CREATE TABLE alembic_version (version_num text)")
    with pytest.raises(StoreUnavailableError, match="did not make"):
        migrate(empty_database_url)
    assert {name for (name,) in query(empty_database_url, TABLES)} == {"sume_jobs", "alembic_version"}


def test_a_database_of_another_encoding_is_refused(postgres: Postgres) -> None:
    """Bodies are kept as text byte for byte, which only UTF8 does."""
    run_sql(postgres, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreUnavailableError, match="UTF8"):
            migrate(postgres.url_of("latin"))
    finally:
        run_sql(postgres, "DROP DATABASE latin WITH (FORCE)")


def test_everything_of_ours_has_our_prefix(database_url: str) -> None:
    """So that it can share a database with others."""
    names = query(database_url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    names += query(database_url, "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
    assert [name for (name,) in names if not str(name).startswith("sume_")] == []


def test_the_version_the_code_needs_is_the_newest_migration() -> None:
    """/readyz and `check` compare with it."""
    config = Config()
    config.set_main_option("script_location", str(Path(shared.claims.__file__).with_name("migrations")))
    assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA_VERSION


def test_a_schema_that_is_missing_says_what_to_run(empty_database_url: str) -> None:
    """An operator reads the remedy in the error."""
    store = PostgresStore(empty_database_url, stale=timedelta(1))
    with closing(store), pytest.raises(StoreUnavailableError, match="sume-jobs migrate"):
        store.check()


def test_a_schema_of_a_newer_release_is_refused_in_one_line(database_url: str) -> None:
    """A rollback meets it on every start."""
    query(database_url, "UPDATE sume_jobs_version SET version_num = '9999' RETURNING 1")
    with pytest.raises(StoreUnavailableError, match="newer release"):
        migrate(database_url)


def test_counting_duplicates_is_a_hot_update(database_url: str) -> None:
    """No index is touched, however often a job is redelivered."""
    subject = PostgresSubject(database_url)
    subject.deliver("job_a", payload='{"padding": "' + "x" * 1_000 + '"}')
    for _ in range(50):
        subject.deliver("job_a")
    subject.store.close()  # a session reports its statistics at its end
    [(updates, hot)] = query(database_url, HOT)
    assert (updates, hot) == (50, 50)


def test_the_longest_job_id_is_stored(database_url: str) -> None:
    """As long as the parser lets one through."""
    subject = PostgresSubject(database_url)
    assert subject.deliver("a" * 128).new
    subject.store.close()


@pytest.mark.parametrize(
    "broken",
    [
        "state = 'sleeping'",
        "state = 'running'",
        "lease_token = gen_random_uuid()",
        "event = NULL",
        "status = 'FINE'",
        "event = 'job.started'",
        "payload = NULL",
        "wake_at = NULL",
        "state = 'expected'",
        "state = 'done'",
        "state = 'dead', wake_at = NULL",
        "job_id = '../etc'",
        "job_id = ''",
        "job_id = 'job_a' || chr(10)",
        "job_id = repeat('a', 129)",
    ],
)
def test_the_database_refuses_a_row_that_cannot_be(database_url: str, broken: str) -> None:
    """Whoever writes, a job is never in half a state."""
    subject = PostgresSubject(database_url)
    subject.deliver("job_a")
    subject.store.close()
    with pytest.raises(psycopg.errors.CheckViolation):
        query(database_url, f"UPDATE sume_jobs SET {broken} RETURNING 1")  # noqa: S608 - constants of this test


def test_the_checks_know_the_states_and_events_of_the_code(database_url: str) -> None:
    """One list, two places, held equal."""
    rows = query(database_url, "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c'")
    constraints = {name: str(definition) for name, definition in rows}
    for name, words in (("sume_jobs_state", STATES), ("sume_jobs_event", EVENT_NAMES)):
        assert set(re.findall(r"'([a-z.]+)'::text", constraints[name])) == set(words)
