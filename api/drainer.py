"""Sends the messages of new claims to Redis in batches, behind the backs of the requests."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from shared.claims.records import Message
from shared.errors import QueueUnavailableError
from shared.logs import get_logger
from shared.metrics import Metrics

BATCH_LIMIT = 128
CAPACITY = 20_000
RETRY_AFTER = timedelta(seconds=1)
GATHER_SECONDS = 0.005
"""A message waits for others: fewer and larger batches."""
REPORT_EVERY = timedelta(seconds=30)


class Target(Protocol):
    """What messages are sent to."""

    async def send(self, messages: Sequence[Message]) -> None:
        """Send, or raise QueueUnavailableError in time."""
        ...

    async def close(self) -> None:
        """Give the connection back."""
        ...


class Drainer:
    """One task that enqueues; what it must drop stays claimed, and the sweep sends it (I1).

    `enqueue_many` never waits and never raises, so Redis can neither change nor slow an answer. While Redis is away
    messages wait in memory, as many as `capacity`, and one try is made every RETRY_AFTER: asking for each batch
    took a third of the receiver's time.
    """

    def __init__(
        self, target: Target, *, metrics: Metrics, capacity: int = CAPACITY, retry_after: timedelta = RETRY_AFTER
    ) -> None:
        self._target = target
        self._metrics = metrics
        self._capacity = capacity
        self._retry_after = retry_after.total_seconds()
        self._waiting: deque[Message] = deque()
        self._wanted = asyncio.Event()
        self._closing = asyncio.Event()
        self._closed = False
        self._resume_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._task: asyncio.Task[None] | None = None
        self._away = False
        self._unreported = 0
        self._report_due = 0.0

    def start(self) -> None:
        """Start the task; call it on the event loop that the drainer is to belong to."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._task = self._loop.create_task(self._drain())

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Take the messages of claims that are committed (I3), from any thread, once it is started."""
        if threading.get_ident() == self._thread:
            self._take(messages)
        elif self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the process ends, and they are the sweep's
                self._loop.call_soon_threadsafe(self._take, messages)

    def _take(self, messages: Sequence[Message]) -> None:
        room = 0 if self._closed else max(0, self._capacity - len(self._waiting))
        self._waiting.extend(messages[:room])
        self._wanted.set()
        if len(messages) > room:
            self._drop(len(messages) - room, "too many messages wait for Redis")

    async def close(self, *, within: timedelta) -> None:
        """Send what waits, for as long as `within`; what is left then is the sweep's."""
        self._closing.set()
        self._wanted.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=within.total_seconds())
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._closed = True
        with suppress(QueueUnavailableError):
            await self._target.close()
        left = len(self._waiting)
        self._waiting.clear()
        if left:
            self._drop(left, "the shutdown could not wait for Redis")
        self._report("the process stops")

    async def _drain(self) -> None:
        while batch := await self._next_batch():
            try:
                await self._target.send(batch)
            except QueueUnavailableError as error:
                if not self._put_back(batch, str(error)):
                    return
            except asyncio.CancelledError:
                self._waiting.extendleft(reversed(batch))  # counted among what could not be sent
                raise
            except Exception as error:  # noqa: BLE001 - a defect must not stop the messages of others
                get_logger().error("enqueue.failed", messages=len(batch), exc_info=error)
                self._drop(len(batch), type(error).__name__)
            else:
                if self._away:
                    self._away = False
                    get_logger().info("enqueue.resumed", waiting=len(self._waiting))

    async def _next_batch(self) -> list[Message]:
        """Wait for messages; an empty batch means that the drainer is closing and everything is sent."""
        if not self._waiting and not self._closing.is_set():
            self._wanted.clear()
            await self._wanted.wait()
        if len(self._waiting) < BATCH_LIMIT:
            await self._rest(GATHER_SECONDS)
        await self._rest(self._resume_at - time.monotonic())
        return [self._waiting.popleft() for _ in range(min(BATCH_LIMIT, len(self._waiting)))]

    async def _rest(self, seconds: float) -> None:
        """Wait, though not when the drainer is closing."""
        if seconds > 0 and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._closing.wait()

    def _put_back(self, batch: Sequence[Message], problem: str) -> bool:
        """Keep what could not be sent in front of what waits; False when the drainer closes and there is no more time.

        Those that no longer fit are the sweep's, as are all of them when this process ends.
        """
        if not self._away:
            self._away = True
            get_logger().warning("enqueue.paused", problem=problem, consequence="messages wait in memory")
        room = max(0, self._capacity - len(self._waiting))
        self._waiting.extendleft(reversed(batch[:room]))
        self._resume_at = time.monotonic() + self._retry_after
        if len(batch) > room:
            self._drop(len(batch) - room, problem)
        return not self._closing.is_set()

    def _drop(self, count: int, problem: str) -> None:
        """Count what was dropped; an outage is one line in REPORT_EVERY, not one a message."""
        self._metrics.messages_dropped(count)
        self._unreported += count
        if time.monotonic() >= self._report_due:
            self._report(problem)

    def _report(self, problem: str) -> None:
        count, self._unreported = self._unreported, 0
        self._report_due = time.monotonic() + REPORT_EVERY.total_seconds()
        if count:
            get_logger().warning("enqueue.dropped", count=count, problem=problem, consequence="the sweep sends them")
