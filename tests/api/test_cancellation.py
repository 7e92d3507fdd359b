"""Clients that give up take nothing from the others, and nobody gets another's result."""

import asyncio
import random
from datetime import timedelta

from api.claim_writers import WRITERS, ClaimWriters, Outcome
from shared.claims.records import ClaimResult
from shared.errors import StoreUnavailableError
from shared.metrics import Metrics
from tests.api.fakes import FakeClaims, event
from tests.api.test_group_commit import committing, held_up, run

CLIENTS = 10_000


def test_ten_thousand_clients_that_cancel_at_random_get_no_other_ones_result() -> None:
    """Every client that stays gets the result of its own job, and exactly one is new for each job."""

    async def story() -> None:
        chance = random.Random(7)
        claims = FakeClaims()
        claims.problem = lambda _events: None if chance.random() > 0.02 else StoreUnavailableError("blip")

        async with committing(claims) as commit:

            async def client(number: int) -> ClaimResult | None:
                for _ in range(chance.randrange(20)):
                    await asyncio.sleep(0)
                try:
                    return await commit.claim(event(f"job-{number % 2_000}"))
                except StoreUnavailableError:
                    return None

            async def impatient(number: int) -> tuple[int, ClaimResult | None]:
                task = asyncio.create_task(client(number))
                if chance.random() < 0.5:
                    for _ in range(chance.randrange(40)):
                        await asyncio.sleep(0)
                    task.cancel()
                try:
                    return number, await task
                except asyncio.CancelledError:
                    return number, None

            answered = await asyncio.gather(*(impatient(number) for number in range(CLIENTS)))
        results = [(number, result) for number, result in answered if result is not None]
        assert len(results) > CLIENTS / 4
        assert len(results) < CLIENTS
        assert all(result.job_id == f"job-{number % 2_000}" for number, result in results)
        ranks = [(result.job_id, result.deliveries) for _, result in results]
        assert len(set(ranks)) == len(ranks)
        assert all(result.new == (result.deliveries == 1) for _, result in results)

    run(story)


def test_a_claim_given_up_before_its_turn_is_not_written() -> None:
    """A claim whose client was answered 503 while it waited costs the recovering database nothing."""

    async def story() -> None:
        claims = FakeClaims()
        async with committing(claims) as commit:
            first = await held_up(claims, commit)
            given_up = asyncio.create_task(commit.claim(event("given-up")))
            waiting = asyncio.create_task(commit.claim(event("waiting")))
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.sleep(0)
            claims.gate.set()
            await asyncio.gather(*first, waiting)
        assert claims.batches[WRITERS:] == [["waiting"]]

    run(story)


def test_a_claim_given_up_while_it_is_written_leaves_its_batch_alone() -> None:
    """When a client goes away during the write, its claim stands and the others are answered."""

    async def story() -> None:
        claims = FakeClaims()
        async with committing(claims) as commit:
            gone, staying = await held_up(claims, commit)
            gone.cancel()
            await asyncio.sleep(0)
            claims.gate.set()
            assert (await staying).new
            assert (await commit.claim(event("next"))).new
        assert claims.deliveries["first-0"] == 1

    run(story)


def test_a_batch_for_which_there_is_no_thread_is_told_so() -> None:
    """It fails at once instead of holding a writer for ever, and the next one is written."""
    claims = FakeClaims()

    async def story() -> None:
        claims.gate.clear()
        writers = ClaimWriters(
            claims.claim, interrupt=claims.interrupt, metrics=Metrics(), time_limit=timedelta(seconds=20)
        )
        told: asyncio.Queue[list[Outcome]] = asyncio.Queue()
        for number in range(WRITERS + 1):
            writers.write([event(f"job-{number}")], told.put_nowait)
        [refused] = await told.get()
        assert isinstance(refused, StoreUnavailableError)
        claims.gate.set()
        for _ in range(WRITERS):
            await told.get()
        writers.write([event("next")], told.put_nowait)
        [result] = await told.get()
        assert isinstance(result, ClaimResult)
        writers.close()

    run(story)
    assert f"job-{WRITERS}" not in claims.deliveries
