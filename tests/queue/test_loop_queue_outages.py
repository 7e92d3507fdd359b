"""The queue of the event loop when its server goes away, hangs or refuses, and when a send is cancelled."""

import asyncio
from typing import Any

import pytest
from redis import Redis

from shared.config import Settings
from shared.sandbox.valkey import Valkey
from tests.conftest import MakeSettings
from tests.queue.looping import DEMO, NEXT, PASSWORD, Run, refused, sending, waiting, with_password


def test_a_restart_costs_no_message_and_no_error(
    run: Run, fragile: Valkey, fragile_settings: Settings, operator: Redis
) -> None:
    """What is sent after it goes out at once."""

    async def story() -> None:
        async with sending(fragile_settings) as queue:
            await queue.send([DEMO])
            fragile.stop()
            fragile.start()
            await queue.send([NEXT])

    run(story)
    assert waiting(operator) == ["job_demo", "job_next"]


def test_a_connection_closed_while_it_was_idle_costs_no_message_and_no_error(
    run: Run, settings: Settings, redis: Redis
) -> None:
    """Whether or not the loop had time to see that Redis hung up."""

    async def story() -> None:
        async with sending(settings) as queue:
            await queue.send([DEMO])
            for _ in range(3):
                redis.client_kill_filter(_type="normal", skipme=True)
                await queue.send([NEXT])
            redis.client_kill_filter(_type="normal", skipme=True)
            connection: Any = queue._connection
            await asyncio.wait_for(connection._reader.read(), 10)  # until the hanging up is known
            await queue.send([NEXT])

    run(story)
    assert waiting(redis) == ["job_demo", *["job_next"] * 4]


def test_a_redis_that_refuses_connections_is_an_error_of_ours(
    run: Run, fragile: Valkey, make_settings: MakeSettings
) -> None:
    """Away at the first send or at a later one; the send after that works."""
    settings = make_settings(redis_url=with_password(fragile))

    def start_again() -> None:
        fragile.start()
        with Redis.from_url(fragile.url) as client:
            client.config_set("requirepass", PASSWORD)

    async def story() -> None:
        fragile.kill()
        async with sending(settings) as queue:
            await refused(queue)
            await refused(queue)
            start_again()
            await queue.send([NEXT])
            fragile.stop()
            await refused(queue)
            start_again()
            await queue.send([NEXT])

    run(story)
    with Redis.from_url(with_password(fragile)) as client:
        assert waiting(client) == ["job_next"] * 2


def test_a_wrong_password_is_an_error_of_ours(
    run: Run, fragile: Valkey, make_settings: MakeSettings, operator: Redis
) -> None:
    """It names what is wrong and not the password; when Redis takes it the next send works."""
    operator.config_set("requirepass", "another")

    async def story() -> None:
        async with sending(make_settings(redis_url=with_password(fragile))) as queue:
            assert "invalid username-password" in await refused(queue)
            assert "invalid username-password" in await refused(queue)
            operator.config_set("requirepass", PASSWORD)
            await queue.send([NEXT])

    run(story)
    assert waiting(operator) == ["job_next"]


def test_a_frozen_redis_is_given_up_in_time(
    run: Run, fragile: Valkey, fragile_settings: Settings, operator: Redis
) -> None:
    """Frozen before the first connection or after it, no send waits long, and the next one works when it thaws."""

    async def story() -> None:
        fragile.pause()
        async with sending(fragile_settings) as queue:
            await refused(queue)
            fragile.resume()
            await queue.send([NEXT])
            fragile.pause()
            await refused(queue)
            await refused(queue)
            fragile.resume()
            await queue.send([NEXT])

    run(story)
    assert [each for each in waiting(operator) if each == "job_next"] == ["job_next"] * 2


def test_a_full_or_read_only_redis_is_an_error_of_ours(run: Run, fragile_settings: Settings, operator: Redis) -> None:
    """The text says why; no answer that was left unread is taken for one of the next send, which works."""

    async def story() -> None:
        async with sending(fragile_settings) as queue:
            await queue.send([NEXT])
            operator.config_set("maxmemory", 1)
            assert "OutOfMemory" in await refused(queue, *[DEMO] * 9)
            operator.config_set("maxmemory", 0)
            await queue.send([NEXT])
            operator.replicaof("127.0.0.1", "1")
            assert "ReadOnly" in await refused(queue, *[DEMO] * 9)
            operator.replicaof("NO", "ONE")
            await queue.send([NEXT])

    run(story)
    assert waiting(operator) == ["job_next"] * 3


def test_a_send_that_was_cancelled_leaves_no_answer_to_the_next_one(
    run: Run, fragile: Valkey, fragile_settings: Settings, operator: Redis
) -> None:
    """Answers that come after all are nobody's: what Redis says to the next send is what that send is told."""

    async def story() -> None:
        async with sending(fragile_settings) as queue:
            await queue.send([NEXT])
            fragile.pause()
            sent = asyncio.create_task(queue.send([DEMO] * 9))
            for _ in range(20):
                await asyncio.sleep(0)
            sent.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sent
            fragile.resume()
            operator.config_set("maxmemory", 1)
            assert "OutOfMemory" in await refused(queue)
            operator.config_set("maxmemory", 0)
            await queue.send([NEXT])

    run(story)
    # That the cancelled ones came too shows that their answers were under way.
    assert waiting(operator) == ["job_next", *["job_demo"] * 9, "job_next"]


def test_a_send_may_be_cancelled_while_it_connects(
    run: Run, fragile: Valkey, fragile_settings: Settings, operator: Redis
) -> None:
    """However far it came, the next send makes a connection of its own."""

    async def story() -> None:
        async with sending(fragile_settings) as queue:
            for turns in range(12):
                fragile.pause()
                sent = asyncio.create_task(queue.send([DEMO]))
                for _ in range(turns):
                    await asyncio.sleep(0)
                sent.cancel()
                await asyncio.wait([sent], timeout=10)
                assert sent.done()
                fragile.resume()
                await queue.send([NEXT])
                await queue.close()

    run(story)
    assert [each for each in waiting(operator) if each == "job_next"] == ["job_next"] * 12
