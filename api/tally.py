"""The counts of refusals and tests, kept in memory and written every few seconds."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from api.lane import Lane
from shared.errors import StoreUnavailableError
from shared.logs import get_logger

WRITE_EVERY = timedelta(seconds=3)


class CountingStore(Protocol):
    """The part of the store a tally needs."""

    def count(self, counts: Mapping[str, int]) -> None:
        """Add to the counters shown in `stats`."""
        ...


class Tally:
    """Counts without a write of their own, so that unsigned traffic costs the database nothing.

    A kill loses at most the last WRITE_EVERY. Counts that could not be written are kept for the next time; those
    the database took without saying so in time are then counted twice.
    """

    def __init__(self, store: CountingStore, *, lane: Lane, within: timedelta) -> None:
        self._store = store
        self._lane = lane
        self._within = within
        self._counts: Counter[str] = Counter()

    def refused(self, code: str) -> None:
        """Count one refusal."""
        self._counts[f"refused:{code}"] += 1

    def tested(self) -> None:
        """Count one `webhook.test`."""
        self._counts["webhook.test"] += 1

    async def write(self) -> None:
        """Write what was counted since the last time."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await self._lane.run(lambda: self._store.count(counts), within=self._within)
        except StoreUnavailableError as error:
            self._counts.update(counts)
            get_logger().info("counts.kept", problem=str(error))

    async def write_forever(self) -> None:
        """Write every WRITE_EVERY until cancelled."""
        while True:
            await asyncio.sleep(WRITE_EVERY.total_seconds())
            await self.write()
