"""The gauges of /metrics, read from the store seldom enough to cost it nothing."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from api.lane import Lane
from shared.claims.records import Stats
from shared.errors import QueueUnavailableError, StoreUnavailableError
from shared.logs import get_logger
from shared.metrics import Gauges
from shared.queue import Queue

KEEP_SECONDS = 15.0
COST_FACTOR = 20
"""Counting reads the whole table: it may take up at most a twentieth of the time."""
STATS_WITHIN = timedelta(seconds=20)
QUEUE_WITHIN = timedelta(seconds=2)


class CountingStore(Protocol):
    """The part of the store that gauges need."""

    def stats(self) -> Stats:
        """Count everything; reads the whole job table."""
        ...


class GaugeReader:
    """Answers from memory while that is fresh; any number of scrapes cause one read."""

    def __init__(self, store: CountingStore, queue: Queue, *, lane: Lane, secret_tags: Sequence[str] = ()) -> None:
        self._store = store
        self._queue = queue
        self._lane = lane
        self._secret_tags = tuple(secret_tags)
        self._gauges = Gauges()
        self._fresh_until = 0.0
        self._reading = asyncio.Lock()

    async def read(self) -> Gauges:
        """Return the gauges; those of a store or queue that does not answer are missing."""
        async with self._reading:
            if time.monotonic() >= self._fresh_until:
                started = time.monotonic()
                self._gauges = await self._read()
                cost = time.monotonic() - started
                self._fresh_until = time.monotonic() + max(KEEP_SECONDS, COST_FACTOR * cost)
            return self._gauges

    async def _read(self) -> Gauges:
        stats = depth = None
        try:
            stats = await self._lane.run(self._store.stats, within=STATS_WITHIN)
        except StoreUnavailableError as error:
            get_logger().warning("gauges.missing", part="database", problem=str(error))
        try:
            depth = await self._lane.run(self._queue.depth, within=QUEUE_WITHIN)
        except (QueueUnavailableError, StoreUnavailableError) as error:
            get_logger().warning("gauges.missing", part="redis", problem=str(error))
        return Gauges(stats, depth, self._secret_tags)
