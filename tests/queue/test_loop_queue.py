"""The queue of the event loop on a real server: what it writes, and over how many connections."""

import asyncio
import gc
import warnings
from typing import Any

import pytest
from redis import Redis

from shared.claims.records import Message
from shared.config import Settings
from shared.queue import LoopQueue, Queue
from tests.conftest import MakeSettings
from tests.queue.looping import DEMO, NEXT, Run, sending, waiting, written


def test_it_writes_what_the_other_queue_writes(run: Run, settings: Settings, redis: Redis) -> None:
    """Record by record and in the same order, whichever of the two a message came through."""
    first = [DEMO, NEXT]
    second = [
        Message(job_id="a.b:c__d_.", event="job.failed", status="ERROR", attempt=2),
        Message(job_id="job_more", event="job.completed", status="OK", attempt=3),
        Message(job_id="job_bad", event="job.failed", status="ERROR", attempt=1),
        DEMO,
    ]
    queue = Queue(settings)
    queue.enqueue_many(first)
    queue.enqueue_many(second)
    queue.close()
    theirs = written(redis)
    redis.flushall()

    async def story() -> None:
        async with sending(settings) as ours:
            await ours.send(first)
            await ours.send(second)

    run(story)
    assert written(redis) == theirs
    assert theirs[0] == ["job_bad", "a.b:c__d_.", "job_demo", "job_next", "job_more", "job_demo"]


def test_one_connection_is_made_and_not_before_the_first_send(run: Run, settings: Settings, redis: Redis) -> None:
    """A queue that sends nothing asks Redis for nothing; one that sends keeps its connection."""

    def connections() -> int:
        stats: Any = redis.info("stats")
        return int(stats["total_connections_received"])

    async def story() -> None:
        before = connections()
        async with sending(settings) as queue:
            await asyncio.sleep(0)
            assert connections() == before
            for _ in range(3):
                await queue.send([DEMO])
                assert connections() == before + 1

    run(story)
    assert waiting(redis) == ["job_demo"] * 3


def test_a_full_batch_of_the_longest_ids_is_sent_in_order(run: Run, settings: Settings, redis: Redis) -> None:
    """However long they are, every message is written, and the answers are all read before the next send."""
    ids = [f"{number:03}{'.:' * 62}z" for number in range(128)]
    batch = [Message(job_id=each, event="job.completed", status="OK", attempt=1) for each in ids]

    async def story() -> None:
        async with sending(settings) as queue:
            await queue.send(batch)
            await queue.send([DEMO])

    run(story)
    assert waiting(redis) == [*ids, "job_demo"]


def test_closing_leaves_nothing_open(run: Run, settings: Settings, redis: Redis) -> None:
    """Nobody is warned of a connection that was forgotten, and a send after it makes another."""

    async def story() -> None:
        queue = LoopQueue(settings)
        await queue.close()
        await queue.send([DEMO])
        await queue.close()
        await queue.close()
        await queue.send([DEMO])
        await queue.close()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        run(story)
        gc.collect()
    assert [str(each.message) for each in warned] == []
    assert waiting(redis) == ["job_demo"] * 2


def test_a_queue_needs_an_address(make_settings: MakeSettings) -> None:
    """Settings that were loaded without REDIS_URL are a mistake of ours."""
    with pytest.raises(ValueError, match="REDIS_URL"):
        LoopQueue(make_settings())
