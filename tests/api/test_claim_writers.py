"""Claim writers: what goes by a connection of the event loop, what by a thread, and which batch fails how."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from api.claim_writers import LARGE
from api.group_commit import GroupCommit
from shared.claims.records import ClaimResult
from shared.errors import StoreUnavailableError
from shared.metrics import Gauges
from tests.api.fakes import event
from tests.api.fakes_connection import FakeConnection, Scene, failing, kinds, run, scene

AWAY = StoreUnavailableError("away")
LOCKED = StoreUnavailableError("locked", reachable=True)


def test_the_first_batch_goes_by_a_thread_and_the_next_ones_by_a_connection() -> None:
    """Nothing is opened before a thread has found that the database answers; from then on no thread is needed."""

    async def story() -> None:
        async with scene() as acted:
            assert acted.opener.attempts == 0
            assert kinds(await acted.writers.write_all("a", "b")) == [True, True]
            await acted.writers.opened.acquire()
            for number in range(3):
                assert kinds(await acted.writers.write_all(f"c-{number}", f"d-{number}")) == [True, True]
        assert acted.by_thread == [["a", "b"]]
        assert acted.by_connection == [["c-0", "d-0"], ["c-1", "d-1"], ["c-2", "d-2"]]
        assert acted.opener.attempts == 1

    run(story)


def test_results_come_in_the_order_of_the_events() -> None:
    """Each claim of a batch is told its own result, a duplicate too."""

    async def story() -> None:
        async with scene() as acted:
            await acted.connect()
            outcomes = await acted.writers.write_all("b", "a", "b")
        told = [(each.job_id, each.new) for each in outcomes if isinstance(each, ClaimResult)]
        assert told == [("b", True), ("a", True), ("b", False)]

    run(story)


def test_no_connection_is_opened_while_the_database_is_away() -> None:
    """A batch of which nothing was stored opens none, however often it is tried."""

    async def story() -> None:
        async with scene(lambda _events: AWAY) as acted:
            for _ in range(3):
                assert kinds(await acted.writers.write_all("a", "b")) == [False, False]
        assert acted.opener.attempts == 0

    run(story)


def test_messages_follow_once_the_claims_are_stored() -> None:
    """What follows the commit is told of a connection's batches after they are stored, and before their requests."""

    async def story() -> None:
        async with scene() as acted:
            connection = await acted.connect()
            assert acted.followed.batches == []  # a thread's `claim_events` sees to that itself
            connection.stuck = True
            told = acted.writers.write_all("a", "b")
            await asyncio.sleep(0)
            assert acted.followed.batches == []
            connection.answer()
            assert told.done()
            assert acted.followed.batches == [["a", "b"]]
            assert acted.followed.stored == [{"a": 1, "b": 1}]

    run(story)


@pytest.mark.parametrize("error", [AWAY, LOCKED])
def test_no_message_follows_a_claim_that_failed(error: StoreUnavailableError) -> None:
    """Where a connection's batch failed nothing is told, whether a thread repeats it or not."""

    async def story() -> None:
        async with scene() as acted:
            await acted.connect()
            acted.opener.claims.problem = lambda _events: error
            await acted.writers.write_all("a")
            await acted.writers.write_all("b", "c")
        assert acted.by_connection == [["a"], ["b", "c"]]
        assert acted.followed.batches == []

    run(story)


def test_one_bad_row_fails_alone() -> None:
    """A batch that the database refused over a connection is repeated singly in a thread."""

    async def story() -> None:
        async with scene(failing("bad", LOCKED)) as acted:
            await acted.connect()
            acted.opener.claims.problem = failing("bad", LOCKED)
            assert kinds(await acted.writers.write_all("a", "bad", "c")) == [True, False, True]
            assert kinds(await acted.writers.write_all("d")) == [True]
        assert acted.by_thread == [["a"], ["bad"], ["c"]]
        assert acted.by_connection == [["a", "bad", "c"], ["d"]]

    run(story)


def test_rows_are_not_repeated_singly_for_longer_than_the_time_limit() -> None:
    """When the limit has passed the rest of a batch fails without having been tried."""

    async def story() -> None:
        async with scene(time_limit=timedelta(0)) as acted:
            await acted.connect()
            acted.opener.claims.problem = lambda _events: LOCKED
            outcomes = await acted.writers.write_all("a", "b")
        assert [str(each) for each in outcomes] == ["other claims of the batch took too long"] * 2
        assert acted.by_thread == []

    run(story)


def test_a_database_that_is_away_fails_the_whole_batch_at_once() -> None:
    """Nothing is repeated: not by a thread, not singly, and every claim is told why."""

    async def story() -> None:
        async with scene() as acted:
            await acted.connect()
            acted.opener.claims.problem = lambda _events: AWAY
            assert await acted.writers.write_all("a", "b", "c") == [AWAY] * 3
        assert acted.by_connection == [["a", "b", "c"]]
        assert acted.by_thread == []

    run(story)


def test_a_batch_of_one_is_not_repeated() -> None:
    """A claim that was refused alone gains nothing from a second try."""

    async def story() -> None:
        async with scene() as acted:
            await acted.connect()
            acted.opener.claims.problem = lambda _events: LOCKED
            assert await acted.writers.write_all("a") == [LOCKED]
        assert acted.by_connection == [["a"]]
        assert acted.by_thread == []

    run(story)


def test_a_batch_goes_by_a_thread_while_the_connection_is_busy() -> None:
    """A batch that is under way over the only connection holds up nobody."""

    async def story() -> None:
        async with scene() as acted:
            connection = await acted.connect()
            connection.stuck = True
            told = acted.writers.write_all("stuck")
            assert kinds(await acted.writers.write_all("next")) == [True]
            assert not told.done()
            connection.answer()
            assert kinds(await told) == [True]
        assert acted.by_thread == [["next"]]
        assert acted.by_connection == [["stuck"]]

    run(story)


def test_a_thread_writes_large_bodies() -> None:
    """A batch of more than LARGE characters in all goes by a thread, one of just as many by the connection."""

    async def story() -> None:
        async with scene() as acted:
            await acted.connect()
            half = "x" * (LARGE // 2)
            assert kinds(await acted.writers.write_all("a", "b", payload=half)) == [True, True]
            assert kinds(await acted.writers.write_all("c", "d", payload=half + "x")) == [True, True]
        assert acted.by_connection == [["a", "b"]]
        assert acted.by_thread == [["c", "d"]]

    run(story)


@pytest.mark.parametrize("error", [UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no text"), OSError("gone")])
def test_what_a_connection_cannot_begin_goes_by_a_thread(error: Exception) -> None:
    """Nothing was sent then; the connection is closed and is no longer used."""

    async def story() -> None:
        async with scene() as acted:
            connection = await acted.connect()
            connection.refusal = error
            assert kinds(await acted.writers.write_all("a", "b")) == [True, True]
            assert connection.closed.is_set()
            await acted.writers.opened.acquire()
            assert kinds(await acted.writers.write_all("c")) == [True]
        assert acted.by_thread == [["a", "b"]]
        assert acted.by_connection == [["c"]]
        assert len(acted.opener.connections) == 2

    run(story)


def test_a_defect_in_what_follows_fails_its_batch_alone() -> None:
    """Sume delivers that batch again; the defect is logged, and the next batch is written over the same connection."""

    async def story() -> None:
        async with scene() as acted:
            await acted.connect()
            acted.followed.problem = ZeroDivisionError("a defect")
            outcomes = await acted.writers.write_all("a", "b")
            assert [type(each) for each in outcomes] == [StoreUnavailableError] * 2
            assert str(outcomes[0]) == "ZeroDivisionError while claiming"
            acted.followed.problem = None
            assert kinds(await acted.writers.write_all("c")) == [True]
        assert acted.by_connection == [["a", "b"], ["c"]]
        assert acted.by_thread == []

    with capture_logs() as lines:
        run(story)
    assert [(line["event"], line["log_level"]) for line in lines] == [("claim.failed", "error")]


def break_nothing(_acted: Scene, _connection: FakeConnection) -> None:
    """Let all go well."""


def lock_a_row(acted: Scene, _connection: FakeConnection) -> None:
    """Let the batch be repeated singly, and one row of it fail."""
    acted.opener.claims.problem = acted.claims.problem = failing("a", LOCKED)


def go_away(acted: Scene, _connection: FakeConnection) -> None:
    """Let the batch fail."""
    acted.opener.claims.problem = lambda _events: AWAY


def refuse_to_begin(_acted: Scene, connection: FakeConnection) -> None:
    """Let the batch go by a thread instead."""
    connection.refusal = OSError("gone")


@pytest.mark.parametrize(
    ("trouble", "stored"), [(break_nothing, 3), (lock_a_row, 2), (go_away, 0), (refuse_to_begin, 3)]
)
def test_every_batch_is_counted_once(trouble: Callable[[Scene, FakeConnection], None], stored: int) -> None:
    """The metrics hold one commit for each batch, whichever way it went, and each stored claim once."""

    async def story() -> None:
        async with scene() as acted:
            connection = await acted.connect()
            trouble(acted, connection)
            await acted.writers.write_all("a", "b", "c")
            shown = acted.metrics.render(Gauges()).decode().splitlines()
        assert "sume_claim_batch_size_count 2.0" in shown  # with that of the thread before
        assert "sume_claim_batch_size_sum 4.0" in shown
        assert "sume_claim_commit_seconds_count 2.0" in shown
        assert f'sume_claims_total{{kind="new"}} {1.0 + stored}' in shown
        assert 'sume_claims_total{kind="duplicate"} 0.0' in shown

    run(story)


def test_a_stuck_connection_is_broken_off() -> None:
    """Its claim fails at the time limit, what waited behind is written, and so are the next claims."""

    async def story() -> None:
        limit = timedelta(seconds=0.2)
        async with scene(time_limit=limit) as acted:
            # The second writer is kept busy by a thread, so that what waits must wait for the interruption.
            commit = GroupCommit(acted.writers, time_limit=limit, held_up_after=timedelta(milliseconds=1))
            connection = await acted.connect()
            assert await asyncio.to_thread(acted.claims.entered.acquire, timeout=10)
            connection.stuck = True
            stuck = asyncio.create_task(commit.claim(event("stuck")))
            await connection.entered.acquire()
            acted.claims.gate.clear()
            hanging = asyncio.create_task(commit.claim(event("hanging")))
            assert await asyncio.to_thread(acted.claims.entered.acquire, timeout=10)
            waiting = asyncio.create_task(commit.claim(event("waiting")))
            with pytest.raises(StoreUnavailableError, match="hung up"):
                await stuck
            assert acted.claims.interrupted.is_set()
            await asyncio.gather(hanging, waiting)
            assert (await commit.claim(event("next"))).new
        assert ["waiting"] in acted.by_thread

    run(story)
