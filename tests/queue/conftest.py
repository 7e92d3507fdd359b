"""Servers to send to, and event loops to send from."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvloop
from redis import Redis

from shared.config import Settings
from shared.sandbox.valkey import Valkey
from tests.conftest import MakeSettings, started
from tests.queue.looping import Run


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs one async story, on the loop that Python comes with and on the receiver's own."""

    async def tidy(story: Callable[[], Awaitable[None]]) -> None:
        try:
            await asyncio.wait_for(story(), 60)
        finally:
            gc.collect()  # a connection that was forgotten warns here; uvloop would wait for it when it is closed
            await asyncio.sleep(0)

    def run_story(story: Callable[[], Awaitable[None]]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(tidy(story))

    return run_story


@pytest.fixture
def settings(make_settings: MakeSettings, redis_url: str) -> Settings:
    return make_settings(redis_url=redis_url)


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def fragile() -> Iterator[Valkey]:
    """A server of the test's own, to be broken."""
    server = Valkey()
    started(server)
    yield server
    server.close()


@pytest.fixture
def fragile_settings(make_settings: MakeSettings, fragile: Valkey) -> Settings:
    return make_settings(redis_url=fragile.url)


@pytest.fixture
def operator(fragile: Valkey) -> Iterator[Redis]:
    """Somebody who breaks the server by its own commands, connected before that."""
    with Redis.from_url(fragile.url) as client:
        client.ping()
        yield client
