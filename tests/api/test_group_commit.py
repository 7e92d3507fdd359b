"""Group commit: batches, failures that stay with their row, overload, stuck connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from api.claim_writers import WRITERS, ClaimWriters
from api.group_commit import BATCH_LIMIT, FEW, GroupCommit
from shared.claims.records import ClaimResult
from shared.errors import StoreUnavailableError
from shared.event import Event
from shared.metrics import Metrics
from tests.api.fakes import FakeClaims, event


@asynccontextmanager
async def committing(
    claims: FakeClaims,
    *,
    capacity: int = 20_000,
    time_limit: timedelta = timedelta(seconds=20),
    held_up_after: timedelta = timedelta(milliseconds=1),
) -> AsyncIterator[GroupCommit]:
    """Run a group commit and end its threads."""
    writers = ClaimWriters(claims.claim, interrupt=claims.interrupt, metrics=Metrics(), time_limit=time_limit)
    try:
        yield GroupCommit(writers, time_limit=time_limit, capacity=capacity, held_up_after=held_up_after)
    finally:
        writers.close()


async def held_up(claims: FakeClaims, commit: GroupCommit) -> list[asyncio.Task[ClaimResult]]:
    """Occupy every writer, so that what comes now waits."""
    claims.gate.clear()
    tasks = []
    for number in range(WRITERS):
        tasks.append(asyncio.create_task(commit.claim(event(f"first-{number}"))))
        assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
    return tasks


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run one async story."""
    asyncio.run(asyncio.wait_for(story(), 60))


def failing(job_id: str, error: Exception) -> Callable[[Sequence[Event]], Exception | None]:
    """Return a problem of every batch that holds the job."""
    return lambda events: error if any(e.job_id == job_id for e in events) else None


def test_what_arrives_during_a_write_is_the_next_batch() -> None:
    """Thirty claims that arrive while the writers are busy are written in one statement."""

    async def story() -> None:
        claims = FakeClaims()
        async with committing(claims) as commit:
            first = await held_up(claims, commit)
            more = [asyncio.create_task(commit.claim(event(f"more-{n}"))) for n in range(30)]
            await asyncio.sleep(0)
            claims.gate.set()
            results = await asyncio.gather(*first, *more)
        assert [len(batch) for batch in claims.batches] == [1] * WRITERS + [30]
        assert all(result.new for result in results)

    run(story)


def test_a_claim_does_not_wait_for_a_few_others() -> None:
    """While few claims are under way the next one is begun at once, as far as there are writers."""

    async def story() -> None:
        claims = FakeClaims()
        claims.gate.clear()
        async with committing(claims, held_up_after=timedelta(hours=1)) as commit:
            tasks = [asyncio.create_task(commit.claim(event(f"few-{n}"))) for n in range(FEW)]
            assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            tasks.append(asyncio.create_task(commit.claim(event("alone"))))
            assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            claims.gate.set()
            await asyncio.gather(*tasks)
        assert [len(batch) for batch in claims.batches] == [FEW, 1]

    run(story)


def test_beside_many_a_second_batch_is_begun_when_it_is_full() -> None:
    """Until then what waits is left to grow, unless the first batch is held up."""

    async def story() -> None:
        claims = FakeClaims()
        claims.gate.clear()
        async with committing(claims, held_up_after=timedelta(hours=1)) as commit:
            tasks = [asyncio.create_task(commit.claim(event(f"first-{n}"))) for n in range(FEW + 1)]
            assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            tasks += [asyncio.create_task(commit.claim(event(f"more-{n}"))) for n in range(BATCH_LIMIT - 1)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not claims.entered.acquire(blocking=False)
            tasks.append(asyncio.create_task(commit.claim(event("the-last"))))
            assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            claims.gate.set()
            await asyncio.gather(*tasks)
        assert [len(batch) for batch in claims.batches] == [FEW + 1, BATCH_LIMIT]

    run(story)


def test_what_comes_for_a_job_that_is_being_written_waits_behind_it_and_no_other_job_does() -> None:
    """Its row is locked until then: a second batch with it would wait too, and hold up whatever is in it."""

    async def story() -> None:
        claims = FakeClaims()
        claims.gate.clear()
        async with committing(claims, held_up_after=timedelta(hours=1)) as commit:
            names = ["same", "same", "other", "same"]
            tasks = []
            for name in names:
                tasks.append(asyncio.create_task(commit.claim(event(name))))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            for _ in range(2):
                assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            claims.gate.set()
            results = await asyncio.gather(*tasks)
        assert sorted(claims.batches) == [["other"], ["same"], ["same", "same"]]
        assert [result.deliveries for result in results] == [1, 2, 1, 3]

    run(story)


@pytest.mark.parametrize(("held_up", "tried"), [(True, 1), (False, 1 + 1 + 3)])
def test_what_waits_behind_a_job_that_held_its_batch_up_fails_with_it(held_up: bool, tried: int) -> None:  # noqa: FBT001 - parametrized
    """A row that somebody locks costs one wait, not one for each delivery; what fails at once is tried again."""

    async def story() -> None:
        claims = FakeClaims(failing("locked", StoreUnavailableError("lock timeout", reachable=True)))
        claims.gate.clear()
        passed_by = timedelta(0) if held_up else timedelta(hours=1)
        async with committing(claims, held_up_after=passed_by) as commit:
            first = asyncio.create_task(commit.claim(event("locked")))
            assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            behind = [asyncio.create_task(commit.claim(event("locked"))) for _ in range(3)]
            for _ in range(5):
                await asyncio.sleep(0)
            claims.gate.set()
            outcomes = await asyncio.gather(first, *behind, return_exceptions=True)
            assert (await commit.claim(event("next"))).new
        assert all(isinstance(outcome, StoreUnavailableError) for outcome in outcomes)
        assert [batch[0] for batch in claims.batches].count("locked") == tried  # together, then singly

    run(story)


def test_what_waits_behind_a_job_counts_against_the_capacity() -> None:
    """A job that is delivered again and again while its row is locked cannot fill the memory."""

    async def story() -> None:
        claims = FakeClaims()
        claims.gate.clear()
        async with committing(claims, capacity=2) as commit:
            tasks = [asyncio.create_task(commit.claim(event("same")))]
            assert await asyncio.to_thread(claims.entered.acquire, timeout=10)
            for _ in range(2):
                tasks.append(asyncio.create_task(commit.claim(event("same"))))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            with pytest.raises(StoreUnavailableError, match="too many"):
                await commit.claim(event("same"))
            claims.gate.set()
            await asyncio.gather(*tasks)
            assert (await commit.claim(event("same"))).deliveries == 4

    run(story)


def test_a_claim_is_given_up_at_its_deadline() -> None:
    """A request is answered in time although its batch is not; the batch is written all the same."""

    async def story() -> None:
        claims = FakeClaims()
        claims.gate.clear()
        async with committing(claims) as commit:
            now = asyncio.get_running_loop().time()
            with pytest.raises(StoreUnavailableError, match="did not answer in time"):
                await commit.claim(event("late"), deadline=now + 0.05)
            claims.gate.set()
            await commit.claim(event("next"))
        assert claims.batches == [["late"], ["next"]]

    run(story)


def test_a_batch_is_capped() -> None:
    """However many wait, one statement takes no more than the cap."""

    async def story() -> None:
        claims = FakeClaims()
        async with committing(claims) as commit:
            first = await held_up(claims, commit)
            more = [asyncio.create_task(commit.claim(event(f"more-{n}"))) for n in range(200)]
            await asyncio.sleep(0)
            claims.gate.set()
            await asyncio.gather(*first, *more)
        assert max(len(batch) for batch in claims.batches) == BATCH_LIMIT

    run(story)


@pytest.mark.parametrize("error", [StoreUnavailableError("locked", reachable=True), ValueError("a defect")])
def test_one_bad_row_fails_alone(error: Exception) -> None:
    """A row that cannot be written fails itself; the others of its batch are stored."""

    async def story() -> None:
        claims = FakeClaims(failing("bad", error))
        async with committing(claims) as commit:
            first = await held_up(claims, commit)
            names = ["a", "bad", "c"]
            tasks = [asyncio.create_task(commit.claim(event(name))) for name in names]
            await asyncio.sleep(0)
            claims.gate.set()
            await asyncio.gather(*first)
            a, bad, c = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(a, ClaimResult)
        assert isinstance(c, ClaimResult)
        assert isinstance(bad, StoreUnavailableError)
        assert claims.deliveries["a"] == claims.deliveries["c"] == 1

    run(story)


def test_an_unreachable_database_fails_a_batch_once() -> None:
    """When the database is away the whole batch fails with one attempt, not with one a row."""

    async def story() -> None:
        claims = FakeClaims(lambda _events: StoreUnavailableError("away"))
        async with committing(claims) as commit:
            first = await held_up(claims, commit)
            tasks = [asyncio.create_task(commit.claim(event(f"more-{n}"))) for n in range(50)]
            await asyncio.sleep(0)
            claims.gate.set()
            results = await asyncio.gather(*first, *tasks, return_exceptions=True)
        assert all(isinstance(result, StoreUnavailableError) for result in results)
        assert len(claims.batches) == WRITERS + 1

    run(story)


def test_overload_is_refused_at_once() -> None:
    """A claim beyond the capacity fails at once instead of waiting; the ones that wait are served."""

    async def story() -> None:
        claims = FakeClaims()
        async with committing(claims, capacity=2) as commit:
            first = await held_up(claims, commit)
            waiting = [asyncio.create_task(commit.claim(event(f"more-{n}"))) for n in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(StoreUnavailableError):
                await commit.claim(event("too-many"))
            claims.gate.set()
            await asyncio.gather(*first, *waiting)
        assert claims.deliveries["too-many"] == 0

    run(story)


def test_a_stuck_batch_is_broken_off() -> None:
    """A batch that hangs past the time limit has its connection broken, and the next claims are written."""

    async def story() -> None:
        claims = FakeClaims()
        async with committing(claims, time_limit=timedelta(seconds=0.2)) as commit:
            stuck = await held_up(claims, commit)
            waiting = asyncio.create_task(commit.claim(event("waiting")))
            assert await asyncio.to_thread(claims.interrupted.wait, 10)
            await asyncio.gather(*stuck, waiting)
        assert claims.deliveries["waiting"] == 1

    run(story)
