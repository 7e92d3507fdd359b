"""The watch over the schedulers, which watch over everything else."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from api.lane import Lane
from shared.claims.watch import WatchStore
from shared.errors import StoreUnavailableError
from shared.logs import get_logger

WATCH_EVERY = timedelta(seconds=15)
SILENCE = timedelta(minutes=2)
LOOK_WITHIN = timedelta(seconds=30)


class Telling(Protocol):
    """The part of the alerts that the watch uses."""

    def tell(self, kind: str, title: str, body: str) -> bool:
        """See AppriseAlerts.tell."""
        ...


class SchedulerWatch:
    """Tells people when no scheduler was seen for two minutes, in a thread of its own."""

    def __init__(self, store: WatchStore, alerts: Telling, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._alerts = alerts
        self._monotonic = monotonic
        self._since = monotonic()
        self._lane = Lane("watch", threads=1, capacity=1)

    def look(self) -> None:
        """Look once; raises StoreUnavailableError."""
        if self._monotonic() - self._since < SILENCE.total_seconds():
            return  # all were started together: it had no time to be seen
        silent = self._store.silent_for("scheduler")
        if silent is not None and silent < SILENCE:
            return
        for_how_long = "ever" if silent is None else f"for {silent // timedelta(minutes=1)} minutes"
        self._alerts.tell(
            "scheduler_silent",
            f"No scheduler was seen {for_how_long}",
            "New jobs still arrive and are handled, but nothing that was lost is repaired, no lost webhook is found, "
            "and nothing else is watched. Start: sume-jobs scheduler",
        )

    async def look_forever(self) -> None:
        """Look every WATCH_EVERY until cancelled; a database that is away is /readyz's to tell."""
        while True:
            await asyncio.sleep(WATCH_EVERY.total_seconds())
            try:
                await self._lane.run(self.look, within=LOOK_WITHIN)
            except StoreUnavailableError as error:
                get_logger().debug("watch.failed", problem=str(error))

    def close(self) -> None:
        """Let its thread end."""
        self._lane.close()
