"""A receiver's connections without sockets, so that a test says which bytes are here after which read."""

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from uvicorn import Config
from uvicorn.server import ServerState

from api.checks import Checks
from api.connection import BoundedConnection
from api.journal import Journal
from api.lane import Lane
from api.public import PublicPort
from api.server import configured
from api.tally import Tally
from api.webhook import Webhook
from shared import clock
from shared.claims.records import ClaimResult
from shared.claims.store import ReceivingStore
from shared.config import Settings
from shared.event import Event
from shared.metrics import Metrics
from tests.api.fakes import FakeClaims, FakeCounters
from tests.api.harness import Headers, body_of, signed
from tests.api.test_group_commit import committing

DATE = (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
ACCEPTED = b"HTTP/1.1 204 No Content\r\n%s: %s\r\n" % DATE
"""The answer to a delivery, but for the end of its headers."""
LINE = b"POST /webhooks/sume HTTP/1.1"


def request(body: bytes, *extra: bytes, line: bytes = LINE, headers: Headers | None = None) -> bytes:
    """Return the bytes of one request, signed unless it is given other headers."""
    names = [b"%s: %s" % pair for pair in (signed(body) if headers is None else headers)]
    framing = [] if any(each.lower().startswith(b"transfer-encoding") for each in extra) else [b"%d" % len(body)]
    lines = [line, b"Host: x", *names, *(b"Content-Length: " + length for length in framing), *extra]
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body if framing else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


def deliveries(count: int) -> bytes:
    """Return so many deliveries, of job-0 and so on, one behind another."""
    return b"".join(request(body_of(f"job-{number}")) for number in range(count))


class StoredClaims(FakeClaims):
    """Claims in memory that sees a conflict, keeps what it was given exactly, and has a quarantine."""

    def __init__(self, problem: Callable[[Sequence[Event]], Exception | None] = lambda _events: None) -> None:
        super().__init__(problem)
        self.claimed: list[Event] = []
        self.stored = threading.Semaphore(0)
        """Released for each claim."""
        self.quarantined: list[tuple[bytes, str]] = []

    def _claim_one(self, claimed: Event) -> ClaimResult:
        self.claimed.append(claimed)
        kept = next(event for event in self.claimed if event.job_id == claimed.job_id)
        counted = super()._claim_one(kept)
        conflict = kept.name != claimed.name
        self.stored.release()
        return ClaimResult(kept.job_id, counted.new, kept.name, kept.status, counted.deliveries, conflict=conflict)

    def quarantine(self, body: bytes, *, reason: str) -> None:
        """Keep a body."""
        self.quarantined.append((body, reason))


class FakeTransport(asyncio.Transport):
    """Keeps what is written until it is read; more than `high_water` bytes of it pause the writer."""

    def __init__(self, changed: asyncio.Event) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)})
        self.protocol: BoundedConnection
        self.high_water = 65_536
        self.failure: Exception | None = None
        """Raised by the next write, once."""
        self.written = b""
        self.reading = True
        self.lost = False
        self._buffered = 0
        self._closing = False
        self._changed = changed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Buffer it; a test never writes to a connection that is gone."""
        assert not self.lost, bytes(data)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.written += bytes(data)
        self._buffered += len(data)
        if self._buffered > self.high_water:
            self.protocol.pause_writing()
        self._changed.set()

    def read(self) -> None:
        """Let the client read all that is buffered."""
        self._buffered = 0
        self.protocol.resume_writing()

    def is_closing(self) -> bool:
        """Whether nothing more is read."""
        return self._closing

    def close(self) -> None:
        """Close; the protocol is told in another turn of the loop, as by any transport."""
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self.lose, None)
        self._changed.set()

    def lose(self, error: Exception | None) -> None:
        """Lose the connection, if it is not lost already."""
        if not self.lost:
            self._closing = self.lost = True
            self.protocol.connection_lost(error)
            self._changed.set()

    def pause_reading(self) -> None:
        """Read no more for now."""
        self.reading = False

    def resume_reading(self) -> None:
        """Read again."""
        self.reading = True
        self._changed.set()


class Complaints(logging.Handler):
    """Hears what uvicorn and asyncio warn of, such as an error that nobody caught."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.heard.append(record.getMessage())


class HeardTally(Tally):
    """Says when something is counted."""

    def __init__(self, counters: FakeCounters, *, lane: Lane, changed: asyncio.Event) -> None:
        super().__init__(counters, lane=lane, within=timedelta(seconds=20))
        self.counters = counters
        self.noted = 0
        """Deliveries that were accepted or refused."""
        self._changed = changed

    def accepted(self) -> None:
        """Count, and say so."""
        super().accepted()
        self._note()

    def refused(self, code: str, *, headers: Sequence[str]) -> None:
        """Count, and say so."""
        super().refused(code, headers=headers)
        self._note()

    def _note(self) -> None:
        self.noted += 1
        self._changed.set()


class Tasks(set[asyncio.Task[None]]):
    """The tasks of a server that are under way, and how many it ever made."""

    made = 0

    def add(self, task: asyncio.Task[None]) -> None:
        """Count one more."""
        self.made += 1
        super().add(task)


@dataclass
class Receiver:
    """The webhook behind as many connections as a test opens."""

    claims: StoredClaims
    config: Config
    metrics: Metrics
    tally: HeardTally
    changed: asyncio.Event
    tasks: Tasks = field(default_factory=Tasks)
    state: ServerState = field(default_factory=ServerState)
    opened: list[FakeTransport] = field(default_factory=list)

    def connect(self) -> FakeTransport:
        """Open a connection."""
        transport = FakeTransport(self.changed)
        protocol: Any = self.config.http_protocol_class
        transport.protocol = protocol(config=self.config, server_state=self.state, app_state={})
        transport.protocol.connection_made(transport)
        self.opened.append(transport)
        return transport

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for what a connection does."""
        async with asyncio.timeout(20):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def answered(self, count: int) -> None:
        """Wait until so many requests are answered in all, and no task is left of them."""
        await self.until(lambda: self.state.total_requests >= count)
        await asyncio.gather(*self.tasks)

    async def noted(self, count: int) -> None:
        """Wait until so many deliveries are accepted or refused, whether anybody is left to be answered or not."""
        await self.until(lambda: self.tally.noted >= count)

    async def claiming(self) -> None:
        """Wait until one more batch is being written."""
        assert await asyncio.to_thread(self.claims.entered.acquire, timeout=20)

    async def send(self, transport: FakeTransport, data: bytes) -> None:
        """Have one read bring these bytes, once the connection reads, and go on when that had its effect."""
        await self.until(lambda: transport.reading or transport.is_closing())
        if not transport.is_closing():
            transport.protocol.data_received(data)
        for _ in range(3):  # turns of the loop: a task that was made begins, and what it began is begun
            await asyncio.sleep(0)


def statuses(transport: FakeTransport) -> list[int]:
    """Return the statuses of all that was answered."""
    return [int(status) for status in STATUS.findall(transport.written)]


def clocks(transport: FakeTransport) -> tuple[bool, bool]:
    """Return whether the clock of an idle connection runs, and that of an arriving request."""
    return transport.protocol.timeout_keep_alive_task is not None, transport.protocol._deadline is not None


def rests(transport: FakeTransport) -> bool:
    """Whether a connection waits for the next request, and for no longer than it may."""
    return clocks(transport) == (True, False)


@asynccontextmanager
async def serving(
    settings: Settings,
    claims: StoredClaims | None = None,
    *,
    capacity: int = 20_000,
    journal: type[Journal] = Journal,
    warned: Sequence[str] = (),
) -> AsyncIterator[Receiver]:
    """Run a receiver; at the end hang up on it, wait for all it does, and hold it to have warned of this alone."""
    claims, metrics, changed, complaints = claims or StoredClaims(), Metrics(), asyncio.Event(), Complaints()
    lane = Lane("records", threads=1, capacity=16)
    tally = HeardTally(FakeCounters(), lane=lane, changed=changed)
    async with committing(claims, capacity=capacity) as group_commit:
        webhook = Webhook(
            settings,
            checks=Checks(settings, unix_seconds=clock.unix_seconds),
            store=cast("ReceivingStore", claims),
            group_commit=group_commit,
            lane=lane,
            journal=journal(tally=tally, metrics=metrics),
        )
        config = configured(PublicPort(webhook), settings, webhook=webhook)
        config.load()
        receiver = Receiver(claims, config, metrics, tally, changed)
        receiver.state.tasks, receiver.state.default_headers = receiver.tasks, [DATE]
        logging.getLogger().addHandler(complaints)
        try:
            yield receiver
        finally:
            claims.gate.set()
            for transport in receiver.opened:
                transport.close()
            await receiver.until(lambda: all(transport.lost for transport in receiver.opened))
            async with asyncio.timeout(20):
                await asyncio.gather(*receiver.tasks)
            lane.close()
            logging.getLogger().removeHandler(complaints)
    assert complaints.heard == list(warned)
