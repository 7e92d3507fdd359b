"""Claims from an event loop are claims like any other, and a connection that is lost is said to be."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from shared.claims.postgres.loop_connection import LoopConnection
from shared.claims.postgres.store import PostgresStore
from shared.claims.records import Claim
from shared.claims.store import ReceivingStore
from shared.errors import StoreUnavailableError
from shared.sandbox.postgres import Postgres
from tests.claims.loop_store import LoopSubject, claimed
from tests.conformance.claiming import ClaimingConformance
from tests.conformance.conflicts import ConflictConformance
from tests.conformance.subject import STALE, event

LARGE = 30_000_000
"""Characters, which no kernel takes at once."""


@pytest.fixture
def subject(database_url: str) -> Iterator[LoopSubject]:
    """A store that claims from an event loop, on a fresh database."""
    subject = LoopSubject(database_url)
    yield subject
    subject.store.close()


class TestClaiming(ClaimingConformance):
    """Claims from an event loop."""


class TestConflicts(ConflictConformance):
    """Conflicts seen from an event loop."""


@asynccontextmanager
async def opened(store: ReceivingStore) -> AsyncIterator[LoopConnection]:
    """Open a connection and close it."""
    connection = store.open_claim_connection()
    assert isinstance(connection, LoopConnection)
    try:
        yield connection
    finally:
        connection.close()


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run one async story, bounded in time."""
    asyncio.run(asyncio.wait_for(story(), 60))


def sending(connection: LoopConnection) -> bool:
    """Whether the kernel has not taken all of a batch yet."""
    return connection._sending


async def until(wanted: Callable[[], bool]) -> None:
    """Return when it is so, letting the loop turn."""
    async with asyncio.timeout(20):
        while not wanted():  # noqa: ASYNC110 - it is told of to nobody
            await asyncio.sleep(0)


def test_a_next_batch_may_begin_as_soon_as_one_is_told_of(store: PostgresStore) -> None:
    """From within `done` the connection is ready, and not before."""

    async def story() -> None:
        async with opened(store) as connection:
            told: list[object] = []
            finished = asyncio.Event()

            def first_done(outcome: object) -> None:
                told.append(outcome)
                assert connection.ready()
                connection.begin([Claim(event("job_b"))], second_done)
                assert not connection.ready()

            def second_done(outcome: object) -> None:
                told.append(outcome)
                finished.set()

            connection.begin([Claim(event("job_a"))], first_done)
            assert not connection.ready()
            await finished.wait()
            assert connection.ready()
            assert [result.job_id for outcome in told for result in outcome] == ["job_a", "job_b"]  # type: ignore[attr-defined]

    run(story)


def test_a_body_larger_than_the_kernel_takes_at_once_is_claimed(store: PostgresStore) -> None:
    """The rest is sent when there is room, while the loop goes on turning."""
    payload = '{"a":"' + "x" * LARGE + '"}'

    async def story() -> None:
        async with opened(store) as connection:
            claiming = asyncio.create_task(claimed(connection, [Claim(event("job_a", payload=payload))]))
            await asyncio.sleep(0)
            assert sending(connection)
            assert (await claiming)[0].new
            assert not sending(connection)
            assert (await claimed(connection, [Claim(event("job_a"))]))[0].deliveries == 2

    run(story)
    lease = store.take_lease("job_a", token=uuid4(), owner="x", lease=timedelta(minutes=1), max_attempts=1)
    assert lease is not None
    assert lease.payload == payload


def test_what_is_no_text_is_refused_before_anything_is_sent(store: PostgresStore) -> None:
    """A lone surrogate raises at once, and the connection is as good as before."""

    async def story() -> None:
        async with opened(store) as connection:
            with pytest.raises(UnicodeEncodeError):
                await claimed(connection, [Claim(event("job_a", payload="\ud800"))])
            assert connection.ready()
            assert (await claimed(connection, [Claim(event("job_a"))]))[0].new

    run(story)


def test_a_row_that_cannot_be_written_leaves_the_connection_in_use(
    own_postgres: Postgres, store: PostgresStore
) -> None:
    """A lock and a broken constraint are told as such, quote no row, and the next claim works."""

    async def story() -> None:
        async with opened(store) as connection:
            await claimed(connection, [Claim(event("job_a"))])
            with psycopg.connect(own_postgres.url) as holder:
                holder.execute("SELECT 1 FROM sume_jobs WHERE job_id = 'job_a' FOR UPDATE")
                with pytest.raises(StoreUnavailableError, match="lock timeout") as locked:
                    await claimed(connection, [Claim(event("job_a")), Claim(event("job_b"))])
                assert locked.value.reachable
            with pytest.raises(StoreUnavailableError, match="sume_jobs_job_id") as refused:
                await claimed(connection, [Claim(event("-bad", payload='{"secret":"planted-secret"}'))])
            assert refused.value.reachable
            assert "planted-secret" not in f"{refused.value} {refused.value.__cause__} {refused.value.__context__}"
            assert connection.ready()
            assert (await claimed(connection, [Claim(event("job_b"))]))[0].new

    run(story)


def test_a_server_that_hangs_up_on_an_idle_connection_is_noticed(own_postgres: Postgres, store: PostgresStore) -> None:
    """It is not ready at once, and lost soon, without a claim that fails for it; the pool lends no dead one."""

    async def story() -> None:
        async with opened(store) as connection:
            await claimed(connection, [Claim(event("job_a"))])
            own_postgres.stop()
            assert not connection.ready()
            await until(lambda: connection.lost)
            own_postgres.start()
        async with opened(store) as connection:
            assert (await claimed(connection, [Claim(event("job_b"))]))[0].new

    run(story)
    assert store.claim_many([Claim(event("job_c"))])[0].new


def test_a_connection_that_was_hung_up_on_before_its_first_claim_is_lost(store: PostgresStore) -> None:
    """From when it is first asked whether it is ready, it notices, so that another takes its place."""

    async def story() -> None:
        async with opened(store) as connection:
            store.interrupt()
            await until(lambda: not connection.ready())
            await until(lambda: connection.lost)

    run(story)


def test_a_server_that_dies_in_the_middle_fails_the_batch_as_away(own_postgres: Postgres, store: PostgresStore) -> None:
    """Whether it was stored is unknown: the fault is no row's, the text holds no password, the connection is lost."""

    async def story() -> None:
        async with opened(store) as connection:
            await claimed(connection, [Claim(event("job_a"))])
            own_postgres.pause()
            claiming = asyncio.create_task(claimed(connection, [Claim(event("job_a"))]))
            await asyncio.sleep(0)
            own_postgres.kill()
            with pytest.raises(StoreUnavailableError) as refused:
                await claiming
            assert not refused.value.reachable
            assert own_postgres.password not in str(refused.value)
            assert connection.lost

    run(story)


def test_a_claim_that_hangs_can_be_interrupted(own_postgres: Postgres, store: PostgresStore) -> None:
    """A frozen server holds nobody longer than its caller wants."""

    async def story() -> None:
        async with opened(store) as connection:
            await claimed(connection, [Claim(event("job_a"))])
            own_postgres.pause()
            try:
                claiming = asyncio.create_task(claimed(connection, [Claim(event("job_a"))]))
                await asyncio.sleep(0)
                store.interrupt()
                with pytest.raises(StoreUnavailableError) as refused:
                    await claiming
                assert not refused.value.reachable
            finally:
                own_postgres.resume()

    run(story)


def test_a_session_that_is_ended_says_why(own_postgres: Postgres, store: PostgresStore) -> None:
    """An administrator who ends the session in the middle of a claim is no row's fault."""

    async def story() -> None:
        async with opened(store) as connection:
            await claimed(connection, [Claim(event("job_a"))])
            with psycopg.connect(own_postgres.url) as holder:
                holder.execute("SELECT 1 FROM sume_jobs WHERE job_id = 'job_a' FOR UPDATE")
                claiming = asyncio.create_task(claimed(connection, [Claim(event("job_a"))]))
                await asyncio.sleep(0)
                with psycopg.connect(own_postgres.url, autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s)", (connection._connection.info.backend_pid,))
                with pytest.raises(StoreUnavailableError) as refused:
                    await claiming
            assert not refused.value.reachable
            await until(lambda: connection.lost)

    run(story)


def test_closing_tells_nobody_and_leaves_the_pool_as_large_as_it_was(store: PostgresStore) -> None:
    """What was under way is nobody's any more, its connection is lent to nobody again, and its place is free."""

    async def story() -> None:
        for number in range(20):
            async with opened(store) as connection:
                connection.begin([Claim(event(f"job_{number}"))], lambda outcome: pytest.fail(f"told {outcome}"))
                connection.close()
                connection.close()
                assert connection._connection.closed
                assert connection.lost
                assert not connection.ready()

    run(story)
    assert store.claim_many([Claim(event("job_next"))])[0].new


def test_its_session_is_as_durable_as_any(own_postgres: Postgres) -> None:
    """A database set to synchronous_commit = off does not weaken the 2xx."""
    with psycopg.connect(own_postgres.url, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = off")
    store = PostgresStore(own_postgres.url, stale=STALE)

    async def story() -> None:
        async with opened(store) as connection:
            assert connection._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)

    try:
        run(story)
    finally:
        store.close()
