"""Links carry, can be cut and slowed, and heal."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from shared.sandbox.ports import LOOPBACK
from tests.chaos.proxy import Link, Network

SLOW_SECONDS = 0.3


@pytest.fixture
def link() -> Iterator[Link]:
    """A link to a server that sends back whatever comes."""
    with Network() as network, socket.create_server((LOOPBACK, 0)) as server:

        def echo(connection: socket.socket) -> None:
            with connection, suppress(ConnectionError):
                while data := connection.recv(1024):
                    connection.sendall(data)

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield network.link(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        serving.join()


def ask(client: socket.socket) -> bytes:
    client.sendall(b"ping")
    return client.recv(16)


def ended(client: socket.socket) -> bool:
    """Whether the other side has ended the connection, in either way."""
    try:
        return ask(client) == b""
    except ConnectionError:
        return True


def connect(link: Link) -> socket.socket:
    return socket.create_connection((LOOPBACK, link.port), timeout=5)


def test_a_link_carries_both_ways(link: Link) -> None:
    with connect(link) as client:
        assert ask(client) == b"ping"


def test_a_cut_link_ends_what_is_open_and_takes_nothing_new_until_it_heals(link: Link) -> None:
    with connect(link) as client:
        assert ask(client) == b"ping"
        link.cut()
        assert ended(client)
    with connect(link) as client:
        assert ended(client)
    link.heal()
    with connect(link) as client:
        assert ask(client) == b"ping"


def test_a_slow_link_holds_answers_back(link: Link) -> None:
    link.slow(SLOW_SECONDS)
    with connect(link) as client:
        before = time.monotonic()
        assert ask(client) == b"ping"
        assert time.monotonic() - before >= SLOW_SECONDS
    link.heal()
    with connect(link) as client:
        before = time.monotonic()
        assert ask(client) == b"ping"
        assert time.monotonic() - before < SLOW_SECONDS
