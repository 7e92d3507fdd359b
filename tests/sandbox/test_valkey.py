"""The embedded Redis-protocol server: its life and its crashes."""

from collections.abc import Iterator

import pytest
import redis

from shared.sandbox.valkey import Valkey
from tests.conftest import started


@pytest.fixture(scope="module")
def breakable() -> Iterator[Valkey]:
    """A server for this module, in whatever state the last test left it."""
    server = Valkey()
    yield server
    server.close()


@pytest.fixture
def server(breakable: Valkey) -> Valkey:
    """A running server that a test may break."""
    started(breakable)
    return breakable


@pytest.fixture
def client(server: Valkey) -> Iterator[redis.Redis]:
    """A client that soon gives up."""
    with redis.Redis.from_url(server.url, socket_timeout=0.3, retry=None) as client:
        yield client


def test_comes_back_with_its_data(server: Valkey, client: redis.Redis) -> None:
    """After a shutdown the same URL finds the same keys."""
    url = server.url
    client.set("kept", 1)
    server.stop()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    server.start()
    assert server.url == url
    assert client.get("kept") == b"1"


def test_is_there_again_after_a_crash(server: Valkey, client: redis.Redis) -> None:
    """A killed server can be started again."""
    server.kill()
    assert not server.running
    with pytest.raises(redis.ConnectionError):
        client.ping()
    server.start()
    assert client.ping()


def test_pause_and_resume(server: Valkey, client: redis.Redis) -> None:
    """A paused server takes connections and answers nothing; starting one that runs resumes it."""
    server.pause()
    with pytest.raises(redis.TimeoutError):
        client.ping()
    server.start()
    assert client.ping()


def test_close_leaves_nothing(server: Valkey) -> None:
    """Its folder is gone with it."""
    folder = server.process.log_path.parent
    assert folder.is_dir()
    server.close()
    assert not folder.exists()


def test_every_call_is_harmless_in_any_state() -> None:
    """A server that was never started, or is closed already, takes any request to end or freeze."""
    server = Valkey()
    for call in (server.pause, server.resume, server.stop, server.kill, server.close, server.close):
        call()
    assert not server.running
