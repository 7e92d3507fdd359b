"""Tests of waits: each is bounded, and each notices within a second that the work must stop."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import pytest

from shared.errors import ShutdownError
from shared.event import Artifact
from shared.storage.storage import never_stop
from tests.worker.downloads import PNG, MemoryPartial, downloader, fetch
from tests.worker.scripted_host import Answerer, Request, ScriptedHost, exactly, head, silent
from worker.addresses import HostRules
from worker.connection import Connection
from worker.failures import DownloadError
from worker.patience import Patience

QUICK = {"stall": timedelta(seconds=0.4)}
PATIENT = {"stall": timedelta(seconds=30)}
STALLS: list[tuple[bytes, ...]] = [
    (),
    (b"HTTP/1.1 200 OK\r\nContent-Le",),
    (head(200, content_length=100),),
    (head(200, content_length=100), b"some"),
    (head(200, transfer_encoding="chunked"), b"5\r\nhello\r\n"),
]


@contextmanager
def stopped_after(seconds: float) -> Iterator[Callable[[], None]]:
    """Give a check that raises from a moment on."""
    stop = threading.Event()
    timer = threading.Timer(seconds, stop.set)
    timer.start()

    def check() -> None:
        if stop.is_set():
            raise ShutdownError("stop")

    yield check
    timer.join()


def stalling(pieces: Sequence[bytes]) -> tuple[ScriptedHost, threading.Event]:
    """A host that sends these and falls silent."""
    event = threading.Event()
    return ScriptedHost([silent(event, *pieces)], stopped=event), event


@pytest.mark.parametrize("pieces", STALLS)
def test_a_stall_ends_the_attempt(pieces: Sequence[bytes]) -> None:
    """No byte for DOWNLOAD_STALL_SECONDS, at whatever place: the attempt ends, and nothing is resumed."""
    host, _ = stalling(pieces)
    with host, pytest.raises(DownloadError, match=r"no byte for 0\.4 s"):
        fetch(host, settings=QUICK)
    assert len(host.requests) == 1


@pytest.mark.parametrize("pieces", STALLS)
def test_a_shutdown_does_not_wait_for_a_stalled_host(pieces: Sequence[bytes]) -> None:
    """The check is noticed within a second, however long the host may be silent."""
    host, _ = stalling(pieces)
    with host, stopped_after(0.1) as check:
        began = time.monotonic()
        with pytest.raises(ShutdownError):
            fetch(host, settings=PATIENT, check=check)
        assert time.monotonic() - began < 1.1


def dripping(every: float) -> Answerer:
    """Send one byte at a time for ever."""

    def answer(_request: Request, connection: object) -> None:
        send = connection.sendall  # type: ignore[attr-defined] # a socket
        send(head(200))
        while True:
            send(b"x")
            threading.Event().wait(every)

    return answer


def test_a_byte_now_and_then_for_ever_is_ended_by_the_check() -> None:
    """A host that never stalls is cut by the job's deadline."""
    with ScriptedHost([dripping(0.02)]) as host, stopped_after(0.3) as check, pytest.raises(ShutdownError):
        fetch(host, settings=QUICK, check=check)


def test_slow_but_steady_finishes() -> None:
    """A transfer much longer than the stall limit is no stall."""

    def answer(_request: Request, connection: object) -> None:
        send = connection.sendall  # type: ignore[attr-defined] # a socket
        send(head(200, content_length=len(PNG)))
        for place in range(0, len(PNG), 128):
            send(PNG[place : place + 128])
            threading.Event().wait(0.05)

    with ScriptedHost([answer]) as host:
        assert fetch(host, settings=QUICK).bytes == len(PNG)


def test_a_resolver_that_hangs_is_not_waited_for() -> None:
    """Asking the system for an address has no time limit; the downloader has."""
    hanging = threading.Event()

    def resolver(_host: str, _port: int) -> Sequence[str]:
        hanging.wait(20)
        return []

    rules = HostRules.of(("media.example",), allow_insecure=True)
    artifact = Artifact(0, "http://media.example/a.png")
    with pytest.raises(DownloadError, match="no byte for"):
        downloader(rules=rules, resolver=resolver, **QUICK).download(artifact, MemoryPartial(), check=never_stop)
    with stopped_after(0.1) as check, pytest.raises(ShutdownError):
        downloader(rules=rules, resolver=resolver, **PATIENT).download(artifact, MemoryPartial(), check=check)
    hanging.set()


def test_a_dead_host_is_a_failure_of_the_world() -> None:
    """A refused connection may be repeated later."""
    with ScriptedHost([exactly(b"")]) as host:
        pass
    with pytest.raises(DownloadError, match="Connection refused"):
        downloader().download(Artifact(0, f"http://127.0.0.1:{host.port}/"), MemoryPartial(), check=never_stop)


def test_a_pause_is_not_waited_for_at_shutdown() -> None:
    """A shutdown ends the wait before the next try."""
    began = time.monotonic()
    with stopped_after(0.1) as check, pytest.raises(ShutdownError):
        Patience(check, timedelta(seconds=30)).pause(20)
    assert time.monotonic() - began < 1.1


def test_a_fast_transfer_notices_the_check_too() -> None:
    """Bytes that are always there are no reason to go on."""

    def check() -> None:
        raise ShutdownError("stop")

    ours, theirs = socket.socketpair()
    with ours, theirs, Connection(ours, patience=Patience(check, timedelta(seconds=30))) as connection:
        theirs.sendall(b"there")
        with pytest.raises(ShutdownError):
            connection.readinto(bytearray(5))


def test_many_silent_addresses_take_no_longer_than_one() -> None:
    """Each address of a host gets its share of DOWNLOAD_STALL_SECONDS, so that the next one is reached in time."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filling in (first, second):  # the system answers no further connection than the first
            filling.setblocking(False)  # noqa: FBT003 - the socket module's own signature
            filling.connect_ex(full.getsockname())
        rules = HostRules.of(("media.example",), allow_insecure=True)
        silent_everywhere = downloader(rules=rules, resolver=lambda _host, _port: ["127.0.0.1"] * 4, **QUICK)
        artifact = Artifact(0, f"http://media.example:{full.getsockname()[1]}/a.png")
        began = time.monotonic()
        with pytest.raises(DownloadError, match="no byte for"):
            silent_everywhere.download(artifact, MemoryPartial(), check=never_stop)
        assert time.monotonic() - began < 1
