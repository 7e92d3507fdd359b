"""The drainer: messages go out in batches, and Redis being away costs nobody anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from structlog.testing import capture_logs

from api.drainer import Drainer
from shared.claims.records import Message
from shared.errors import QueueUnavailableError
from shared.metrics import Gauges, Metrics
from tests.api.fakes import FakeQueue
from tests.api.harness import run

SOON = timedelta(seconds=10)


def messages(*job_ids: str) -> list[Message]:
    """Return one message a job."""
    return [Message(job_id, "job.completed", "OK", 1) for job_id in job_ids]


@asynccontextmanager
async def draining(drainer: Drainer, *, within: timedelta = SOON) -> AsyncIterator[Drainer]:
    """Start a drainer and close it."""
    drainer.start()
    yield drainer
    await drainer.close(within=within)


def test_what_waits_is_sent_in_one_batch_and_before_the_end() -> None:
    """Messages that come while Redis is slow go out together, and closing sends all of them."""
    target = FakeQueue()

    async def story() -> None:
        target.gate.clear()
        async with draining(Drainer(target, metrics=Metrics())) as drainer:
            drainer.enqueue_many(messages("a"))
            await target.entered.acquire()
            for name in "bcd":
                drainer.enqueue_many(messages(name))
            target.gate.set()
        assert target.closed

    run(story)
    assert target.batches == [["a"], ["b", "c", "d"]]


def test_messages_come_from_any_thread() -> None:
    """What a claim's thread or an operator's enqueues is sent like the rest."""
    target = FakeQueue()

    async def story() -> None:
        async with draining(Drainer(target, metrics=Metrics())) as drainer:
            await asyncio.gather(
                *(asyncio.to_thread(drainer.enqueue_many, messages(f"job-{number}")) for number in range(20))
            )

    run(story)
    assert sorted(target.sent) == sorted(f"job-{number}" for number in range(20))


def test_messages_wait_out_an_outage() -> None:
    """While Redis is away messages wait in memory, told of in one line, and all are sent when it is back."""
    target, metrics = FakeQueue(), Metrics()

    async def story() -> None:
        target.problem = QueueUnavailableError("Redis: refused")
        async with draining(Drainer(target, metrics=metrics, retry_after=timedelta(milliseconds=1))) as drainer:
            for number in range(5):
                drainer.enqueue_many(messages(f"job-{number}"))
                await target.entered.acquire()
            target.problem = None

    with capture_logs() as lines:
        run(story)
    assert target.sent == [f"job-{number}" for number in range(5)]
    assert [line["event"] for line in lines if line["event"] != "enqueue.resumed"] == ["enqueue.paused"]
    assert b"sume_messages_dropped_total 0.0" in metrics.render(Gauges())


def test_a_redis_that_is_away_is_not_asked_for_each_message() -> None:
    """After a refusal nothing is tried for a while, however many messages come; closing makes one last try."""
    target, metrics = FakeQueue(), Metrics()

    async def story() -> None:
        target.problem = QueueUnavailableError("Redis: refused")
        async with draining(Drainer(target, metrics=metrics, retry_after=timedelta(hours=1))) as drainer:
            drainer.enqueue_many(messages("first"))
            await target.entered.acquire()
            for number in range(100):
                drainer.enqueue_many(messages(f"job-{number}"))
        await target.entered.acquire()
        assert target.entered.locked()

    with capture_logs() as lines:
        run(story)
    dropped = [line["count"] for line in lines if line["event"] == "enqueue.dropped"]
    assert dropped == [101]
    assert b"sume_messages_dropped_total 101.0" in metrics.render(Gauges())


def test_a_frozen_redis_bounds_memory_and_time() -> None:
    """While Redis hangs, offering never waits, what exceeds the capacity is dropped, and closing is bounded."""
    target, metrics = FakeQueue(), Metrics()

    async def story() -> None:
        target.gate.clear()
        drainer = Drainer(target, metrics=metrics, capacity=3)
        async with draining(drainer, within=timedelta(seconds=0.05)):
            drainer.enqueue_many(messages("a"))
            await target.entered.acquire()
            drainer.enqueue_many(messages("b", "c", "d", "e", "f"))
        drainer.enqueue_many(messages("too-late"))

    with capture_logs() as lines:
        run(story)
    assert b"sume_messages_dropped_total 7.0" in metrics.render(Gauges())
    assert sum(line["count"] for line in lines if line["event"] == "enqueue.dropped") >= 6


def test_a_defect_costs_its_batch_alone() -> None:
    """An error nobody foresaw is logged, its messages are the sweep's, and those of others are sent."""
    target, metrics = FakeQueue(), Metrics()

    async def story() -> None:
        target.problem = ZeroDivisionError("a defect")
        async with draining(Drainer(target, metrics=metrics)) as drainer:
            drainer.enqueue_many(messages("lost"))
            await target.entered.acquire()
            target.problem = None
            drainer.enqueue_many(messages("next"))

    with capture_logs() as lines:
        run(story)
    assert target.sent == ["next"]
    assert [line["event"] for line in lines][:1] == ["enqueue.failed"]
    assert b"sume_messages_dropped_total 1.0" in metrics.render(Gauges())
