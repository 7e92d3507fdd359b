"""A send of the event loop's queue is written whole or not at all, and can always be cancelled."""

import asyncio
import time
from typing import Any

from redis import Redis

from shared.config import Settings
from shared.sandbox.valkey import Valkey
from tests.queue.looping import DEMO, NEXT, Run, refused, sending, waiting


def test_a_full_redis_keeps_no_record_of_what_is_not_queued(
    run: Run, fragile_settings: Settings, operator: Redis
) -> None:
    """Each send that Redis refuses half-way would else leave records that nobody reads and nothing deletes."""

    async def story() -> None:
        async with sending(fragile_settings) as queue:
            await queue.send([NEXT])
            for _ in range(4):
                operator.config_set("maxmemory", 0)
                memory: Any = operator.info("memory")
                operator.config_set("maxmemory", memory["used_memory"] + 30_000)
                await refused(queue, *[DEMO] * 128)

    run(story)
    assert waiting(operator) == ["job_next"]
    assert len(list(operator.scan_iter("rq:job:*"))) == 1


def test_a_send_is_cancelled_at_once_wherever_it_is(run: Run, fragile: Valkey, fragile_settings: Settings) -> None:
    """Connected or not, a frozen Redis holds no cancelled send up."""

    async def story() -> None:
        for used in (False, True):
            for turns in range(14):
                async with sending(fragile_settings) as queue:
                    if used:
                        await queue.send([NEXT])
                    fragile.pause()
                    sent = asyncio.create_task(queue.send([DEMO]))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    before = time.monotonic()
                    sent.cancel()
                    await asyncio.wait([sent], timeout=10)
                    fragile.resume()
                    assert sent.cancelled()
                    assert time.monotonic() - before < 0.3

    run(story)
