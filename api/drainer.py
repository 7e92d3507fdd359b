"""Sends the messages of new claims to Redis in batches, behind the backs of the requests."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from shared.claims.records import Message
from shared.errors import QueueUnavailableError
from shared.intake import Producer
from shared.logs import get_logger
from shared.metrics import Metrics

BATCH_LIMIT = 128
CAPACITY = 20_000
RETRY_AFTER = timedelta(seconds=1)
GATHER_SECONDS = 0.005
"""The first message after a rest waits for others: fewer and larger batches cost the receiver a third less."""
REPORT_EVERY = timedelta(seconds=30)


class Drainer:
    """One thread that enqueues; what it must drop stays claimed, and the sweep sends it (I1).

    `enqueue_many` never waits and never raises, so Redis can neither change nor slow an answer. While Redis is away
    messages wait in memory, as many as `capacity`, and one try is made every RETRY_AFTER: asking for each batch
    took a third of the receiver's time.
    """

    def __init__(
        self, target: Producer, *, metrics: Metrics, capacity: int = CAPACITY, retry_after: timedelta = RETRY_AFTER
    ) -> None:
        self._target = target
        self._metrics = metrics
        self._capacity = capacity
        self._retry_after = retry_after.total_seconds()
        self._waiting: deque[Message] = deque()
        self._changed = threading.Condition()
        self._idle = False
        """The thread waits for messages; while it waits for Redis it need not be woken for each."""
        self._resume_at = 0.0
        self._closing = False
        self._thread = threading.Thread(target=self._drain, name="drainer", daemon=True)
        self._away = False
        self._unreported = 0
        self._report_due = 0.0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Take the messages of claims that are committed (I3), from any thread."""
        with self._changed:
            room = max(0, self._capacity - len(self._waiting))
            self._waiting.extend(messages[:room])
            if self._idle:
                self._changed.notify()
        if len(messages) > room:
            self._drop(len(messages) - room, "too many messages wait for Redis")

    def close(self, *, within: timedelta) -> None:
        """Send what waits, for as long as `within`; what is left then is the sweep's."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(within.total_seconds())
        with self._changed:
            left = len(self._waiting)
            self._waiting.clear()
        if left:
            self._drop(left, "the shutdown could not wait for Redis")
        self._report("the process stops")

    def _drain(self) -> None:
        while batch := self._next_batch():
            try:
                self._target.enqueue_many(batch)
            except QueueUnavailableError as error:
                if not self._put_back(batch, str(error)):
                    return
            else:
                if self._away:
                    self._away = False
                    get_logger().info("enqueue.resumed", waiting=len(self._waiting))

    def _next_batch(self) -> list[Message]:
        """Wait for messages; an empty batch means that the drainer is closing and everything is sent."""
        with self._changed:
            while not self._closing:
                pause = self._resume_at - time.monotonic()
                self._idle = not self._waiting
                if self._idle:
                    self._changed.wait()
                    self._idle = False
                    self._changed.wait_for(lambda: self._closing, GATHER_SECONDS)
                elif pause > 0:
                    self._changed.wait(pause)
                else:
                    break
            self._idle = False
            return [self._waiting.popleft() for _ in range(min(BATCH_LIMIT, len(self._waiting)))]

    def _put_back(self, batch: Sequence[Message], problem: str) -> bool:
        """Keep what could not be sent in front of what waits; False when the drainer closes and there is no more time.

        Those that no longer fit are the sweep's, as are all of them when this process ends.
        """
        if not self._away:
            self._away = True
            get_logger().warning("enqueue.paused", problem=problem, consequence="messages wait in memory")
        with self._changed:
            room = max(0, self._capacity - len(self._waiting))
            self._waiting.extendleft(reversed(batch[:room]))
            self._resume_at = time.monotonic() + self._retry_after
            closing = self._closing
        if len(batch) > room:
            self._drop(len(batch) - room, problem)
        return not closing

    def _drop(self, count: int, problem: str) -> None:
        """Count what was dropped; an outage is one line in REPORT_EVERY, not one a message."""
        self._metrics.messages_dropped(count)
        with self._changed:
            self._unreported += count
        if time.monotonic() >= self._report_due:
            self._report(problem)

    def _report(self, problem: str) -> None:
        with self._changed:
            count, self._unreported = self._unreported, 0
            self._report_due = time.monotonic() + REPORT_EVERY.total_seconds()
        if count:
            get_logger().warning("enqueue.dropped", count=count, problem=problem, consequence="the sweep sends them")
