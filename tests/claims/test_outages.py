"""PostgreSQL away, slow, locked or cut: said clearly, never half stored, and over as soon as it is over."""

import gc
import socket
import threading
from contextlib import closing

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types
import psycopg
import pytest

from shared.claims.postgres.store import PostgresStore
from shared.claims.records import Claim
from shared.errors import StoreUnavailableError
from shared.sandbox.postgres import Postgres
from tests.conformance.subject import STALE, event


def test_a_restarted_server_is_used_again_at_once(own_postgres: Postgres, store: PostgresStore) -> None:
    """An idle connection the server closed is replaced before it is used: no claim fails for it."""
    store.claim_many([Claim(event("job_a"))])
    own_postgres.stop()
    own_postgres.start()
    assert store.claim_many([Claim(event("job_b"))])[0].new
    assert store.stats().states == {"claimed": 2}


@pytest.mark.parametrize("direct", [True, False])
def test_a_server_that_takes_connections_and_never_answers_costs_no_descriptor(direct: bool) -> None:  # noqa: FBT001 - parametrized
    """An attempt that times out is closed without the garbage collector, whichever way it was made."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        closing(PostgresStore(f"postgresql://u:pw@127.0.0.1:{silent.getsockname()[1]}/none", stale=STALE)) as store,
    ):
        gc.collect()
        gc.disable()
        try:
            before = psutil.Process().num_fds()
            with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                store.claim_many([Claim(event("job_a"))]) if direct else store.stats()
            assert psutil.Process().num_fds() <= before
        finally:
            gc.enable()


def test_a_server_that_is_away_is_said_to_be(own_postgres: Postgres, store: PostgresStore) -> None:
    """The error says so, is not the fault of any row, and holds no password."""
    own_postgres.stop()
    with pytest.raises(StoreUnavailableError, match="cannot be reached") as refused:
        store.claim_many([Claim(event("job_a"))])
    assert not refused.value.reachable
    assert own_postgres.password not in str(refused.value)


def test_a_locked_row_costs_a_bounded_wait(own_postgres: Postgres, store: PostgresStore) -> None:
    """An open transaction on a job's row fails that batch in time, and singly only that row."""
    store.claim_many([Claim(event("job_a"))])
    with psycopg.connect(own_postgres.url) as holder:
        holder.execute("SELECT 1 FROM sume_jobs WHERE job_id = 'job_a' FOR UPDATE")
        with pytest.raises(StoreUnavailableError, match="lock timeout") as refused:
            store.claim_many([Claim(event("job_a")), Claim(event("job_b"))])
        assert refused.value.reachable
        assert store.claim_many([Claim(event("job_b"))])[0].new
    assert store.claim_many([Claim(event("job_a"))])[0].deliveries == 2


def test_a_claim_that_hangs_can_be_interrupted(own_postgres: Postgres, store: PostgresStore) -> None:
    """A frozen server holds no thread longer than its caller wants, and the next claim works."""
    store.claim_many([Claim(event("job_a"))])
    own_postgres.pause()
    failed = threading.Event()

    def claim() -> None:
        with pytest.raises(StoreUnavailableError):
            store.claim_many([Claim(event("job_b"))])
        failed.set()

    thread = threading.Thread(target=claim)
    thread.start()
    try:
        while not failed.wait(0.05):
            store.interrupt()
    finally:
        own_postgres.resume()
        thread.join(10)
    assert store.claim_many([Claim(event("job_c"))])[0].new


def test_a_table_that_no_claim_can_be_written_to_is_not_ready(own_postgres: Postgres, store: PostgresStore) -> None:
    """What /readyz says is what a delivery would meet."""
    store.check()
    with psycopg.connect(own_postgres.url) as holder:
        holder.execute("LOCK TABLE sume_jobs IN EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            store.check()
    store.check()


def test_an_error_quotes_no_row(store: PostgresStore) -> None:
    """PostgreSQL's DETAIL repeats the failing row, payload included; ours does not, nor does its cause."""
    with pytest.raises(StoreUnavailableError) as refused:
        store.claim_many([Claim(event("-bad", payload='{"secret":"planted-secret"}'))])
    assert refused.value.reachable
    shown = f"{refused.value} {refused.value.__cause__}"
    assert "planted-secret" not in shown
    assert "sume_jobs_job_id" in shown


def test_a_claim_is_durable_whatever_the_database_prefers(own_postgres: Postgres) -> None:
    """A database set to synchronous_commit = off does not weaken the 2xx."""
    with psycopg.connect(own_postgres.url, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = off")
        connection.execute("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    with closing(PostgresStore(own_postgres.url, stale=STALE)) as store, store._database.driver_connection() as lent:
        assert lent.execute("SHOW synchronous_commit").fetchone() == ("on",)
        assert lent.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
