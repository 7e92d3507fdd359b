"""The counts of what became of deliveries, kept in memory and written every few seconds."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from api.lane import Lane
from shared.errors import StoreUnavailableError
from shared.logs import get_logger

WRITE_EVERY = timedelta(seconds=3)
HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}")
LONGEST_DETAIL = 1000


class CountingStore(Protocol):
    """The part of the store a tally needs."""

    def count(self, counts: Mapping[str, int], *, details: Mapping[str, str]) -> None:
        """See ReceivingStore.count."""
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
        self._headers: dict[str, Sequence[str]] = {}

    def refused(self, code: str, *, headers: Sequence[str]) -> None:
        """Count one refusal, and remember which headers came with it: their names."""
        self._counts[f"refused:{code}"] += 1
        self._headers[f"refused:{code}"] = headers

    def accepted(self) -> None:
        """Count one delivery that was answered 2xx."""
        self._counts["accepted"] += 1

    def redelivered(self) -> None:
        """Count one of them whose job had been delivered before."""
        self._counts["redelivered"] += 1

    def signed(self, tags: Iterable[str]) -> None:
        """Note which secrets signed a genuine delivery."""
        for tag in tags:
            self._counts[f"secret:{tag}"] += 1

    def tested(self) -> None:
        """Count one `webhook.test`."""
        self._counts["webhook.test"] += 1

    async def write(self) -> None:
        """Write what was counted since the last time."""
        counts, self._counts = self._counts, Counter()
        headers, self._headers = self._headers, {}
        if not counts:
            return
        details = {counter: told(names) for counter, names in headers.items()}
        try:
            await self._lane.run(lambda: self._store.count(counts, details=details), within=self._within)
        except StoreUnavailableError as error:
            self._counts.update(counts)
            self._headers = headers | self._headers
            get_logger().info("counts.kept", problem=str(error))

    async def write_forever(self) -> None:
        """Write every WRITE_EVERY until cancelled."""
        while True:
            await asyncio.sleep(WRITE_EVERY.total_seconds())
            await self.write()


def told(headers: Iterable[str]) -> str:
    """Return the names of headers as people are shown them: only what can be one, each once, in bounded length."""
    return ", ".join(dict.fromkeys(name for name in headers if HEADER_NAME.fullmatch(name)))[:LONGEST_DETAIL]
