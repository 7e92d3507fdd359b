"""Transfers that last: hours pass on a clock of the test's own, which the host moves on between two pieces."""

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from shared.claims.states import Reason
from shared.errors import RetryableError
from shared.event import Artifact
from shared.storage.storage import never_stop
from tests.worker.downloads import MemoryPartial, downloader
from tests.worker.scripted_host import Request, ScriptedHost, head

STALL = timedelta(seconds=30)
HOUR = 3600.0


@dataclass
class PassedTime:
    """A clock that stands still until it is moved on."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@dataclass
class WatchedPartial(MemoryPartial):
    """Knows when a piece has arrived and the downloader waits for the next one."""

    checks: int = 2
    ended: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def write(self, data: bytes) -> None:
        """Append all of the data."""
        super().write(data)
        with self.changed:
            self.checks = 0

    def check(self) -> None:
        """Be called before a read, and once more in each slice of a wait."""
        with self.changed:
            self.checks += 1
            self.changed.notify()

    def wait_until_awaited(self, sent: int) -> bool:
        """Return whether so many bytes came to be there with the next one waited for."""
        with self.changed:
            awaited = self.changed.wait_for(lambda: self.ended or (self.written, self.checks > 1) == (sent, True), 5)
            return awaited and not self.ended

    def end(self) -> None:
        """Say that nothing is waited for any more."""
        with self.changed:
            self.ended = True
            self.changed.notify()


@dataclass
class SlowHost:
    """Waits until a byte is waited for, lets time pass, sends it, and so on."""

    clock: PassedTime
    into: WatchedPartial
    every: float
    size: int | None
    """None: for ever, of no announced length."""

    def __call__(self, _request: Request, connection: socket.socket) -> None:
        connection.sendall(head(200) if self.size is None else head(200, content_length=self.size))
        sent = 0
        while sent != self.size and self.into.wait_until_awaited(sent):
            self.clock.now += self.every
            connection.sendall(b"x")
            sent += 1


def fetch_slowly(*, every: float, size: int | None, check: Callable[[], None] = never_stop, clock: PassedTime) -> int:
    """Download from a slow host; return the bytes."""
    into = WatchedPartial()

    def watched_check() -> None:
        into.check()
        check()

    with ScriptedHost([SlowHost(clock, into, every, size)]) as host:
        patient = downloader(stall=STALL, clock=clock)
        try:
            return patient.download(Artifact(0, f"{host.url}/a.bin"), into, check=watched_check).bytes
        finally:
            into.end()


def test_slow_but_steady_for_twenty_minutes_finishes() -> None:
    """A byte every 29 seconds is no stall."""
    clock = PassedTime()
    assert fetch_slowly(every=29, size=42, clock=clock) == 42
    assert clock.now > 20 * 60


def test_a_byte_a_second_for_ever_ends_with_the_jobs_deadline() -> None:
    """It never stalls, and is not let go on either."""
    clock = PassedTime()

    def check() -> None:
        if clock.now >= HOUR:
            raise RetryableError(Reason.TIMED_OUT, "the attempt took longer than JOB_TIMEOUT_SECONDS")

    with pytest.raises(RetryableError, match="JOB_TIMEOUT_SECONDS"):
        fetch_slowly(every=1, size=None, check=check, clock=clock)
    assert HOUR <= clock.now <= HOUR + 5
