"""Claim writers: when connections of the event loop are opened, replaced and closed."""

import asyncio
import time
from datetime import timedelta

from structlog.testing import capture_logs

from api.claim_writers import OPEN_AGAIN_AFTER, WRITERS
from shared.errors import StoreUnavailableError
from tests.api.fakes_connection import Scene, kinds, run, scene

AN_HOUR = timedelta(hours=1)


async def connect_all(acted: Scene) -> None:
    """Open as many connections as there may be: another is opened when a thread had to write."""
    for _ in range(WRITERS):
        alive = [connection for connection in acted.opener.connections if not connection.lost]
        for connection in alive:
            connection.stuck = True
            acted.writers.write_all("under-way")
        await acted.connect()
        for connection in alive:
            connection.stuck = False
            connection.answer()
    acted.by_connection.clear()


def test_an_opening_that_failed_is_not_repeated_at_once() -> None:
    """Claims go on by threads, however many, and not before OPEN_AGAIN_AFTER is another connection tried."""

    async def story() -> None:
        async with scene() as acted:
            acted.opener.problem = StoreUnavailableError("too many connections")
            began = time.monotonic()
            await acted.writers.write_all("first")
            await acted.writers.opened.acquire()
            assert acted.writers.open_again_at >= began + OPEN_AGAIN_AFTER.total_seconds()
            assert acted.writers.open_again_at <= time.monotonic() + OPEN_AGAIN_AFTER.total_seconds()

            acted.opener.problem = None
            acted.writers.after(-AN_HOUR)  # so that no slow machine comes to the end of the pause
            for number in range(5):
                assert kinds(await acted.writers.write_all(f"meanwhile-{number}")) == [True]
            assert acted.opener.attempts == 1
            acted.writers.after(AN_HOUR + OPEN_AGAIN_AFTER)
            await acted.connect()
            assert kinds(await acted.writers.write_all("at-last")) == [True]
        assert acted.opener.attempts == 2
        assert acted.by_connection == [["at-last"]]

    with capture_logs() as lines:
        run(story)
    refused = [line["problem"] for line in lines if line["event"] == "claim_connection.refused"]
    assert refused == ["too many connections"]


def test_claims_wait_for_no_opening() -> None:
    """While a connection is being opened claims go by threads, and no second one is asked for."""

    async def story() -> None:
        async with scene() as acted:
            acted.opener.gate.clear()
            for number in range(5):
                assert kinds(await acted.writers.write_all(f"meanwhile-{number}")) == [True]
            acted.opener.gate.set()
            await acted.writers.opened.acquire()
            assert kinds(await acted.writers.write_all("next")) == [True]
        assert acted.opener.attempts == 1
        assert len(acted.by_thread) == 5
        assert acted.by_connection == [["next"]]

    run(story)


def test_a_lost_connection_is_replaced() -> None:
    """A batch under way fails with it, the next one goes by a thread, and the ones after that by a new connection."""

    async def story() -> None:
        async with scene() as acted:
            connection = await acted.connect()
            connection.stuck = True
            told = acted.writers.write_all("lost", "too")
            connection.hang_up()
            assert kinds(await told) == [False, False]
            assert acted.by_thread == []
            replaced = await acted.connect()
            assert replaced is not connection
            assert kinds(await acted.writers.write_all("next")) == [True]
        assert acted.by_connection == [["next"]]

    run(story)


def test_all_lost_connections_are_replaced() -> None:
    """After the database hung up on every idle connection there are as many again."""

    async def story() -> None:
        async with scene() as acted:
            await connect_all(acted)
            for connection in acted.opener.connections:
                connection.hang_up()
            await connect_all(acted)
            alive = [connection for connection in acted.opener.connections if not connection.lost]
            assert len(alive) == WRITERS

    run(story)


def test_no_more_connections_are_opened_than_batches_are_in_flight() -> None:
    """Each of WRITERS batches finds a connection, and what a thread writes beside them opens no other one."""

    async def story() -> None:
        async with scene() as acted:
            await connect_all(acted)
            assert len(acted.opener.connections) == WRITERS
            for connection in acted.opener.connections:
                connection.stuck = True
            told = [acted.writers.write_all(f"stuck-{number}") for number in range(WRITERS)]
            assert kinds(await acted.writers.write_all("by-thread")) == [True]
            await asyncio.sleep(0)
            for connection in acted.opener.connections:
                connection.answer()
            await asyncio.gather(*told)
        assert acted.opener.attempts == WRITERS
        assert acted.by_thread == [["by-thread"]]
        assert acted.by_connection == [[f"stuck-{number}"] for number in range(WRITERS)]

    run(story)


def test_closing_closes_every_connection() -> None:
    """The store, which is closed next, has nothing lent out then."""

    async def story() -> None:
        async with scene() as acted:
            await connect_all(acted)
            acted.writers.close()
            assert [connection.closed.is_set() for connection in acted.opener.connections] == [True] * WRITERS

    run(story)


def test_a_connection_that_comes_after_the_end_is_closed_at_once() -> None:
    """An opening that was under way when the writers were closed leaves no connection behind."""

    async def story() -> None:
        async with scene() as acted:
            acted.opener.gate.clear()
            assert kinds(await acted.writers.write_all("last")) == [True]
            acted.writers.close()
            acted.opener.gate.set()
            await acted.writers.opened.acquire()
            (connection,) = acted.opener.connections
            assert connection.closed.is_set()

    run(story)


def test_nothing_is_opened_after_the_end() -> None:
    """A batch that is told of only after the writers were closed asks for no connection."""

    async def story() -> None:
        async with scene() as acted:
            acted.claims.gate.clear()
            told = acted.writers.write_all("last")
            acted.writers.close()
            acted.claims.gate.set()
            assert kinds(await told) == [True]
        assert acted.opener.attempts == 0

    run(story)
