"""Saying in the log when a server the receiver stands on is away, and when it is back."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from api.health import Probe
from shared.logs import get_logger

ASK_EVERY = timedelta(seconds=10)


class Readiness:
    """Tells each change once; what is away at the start is told at once."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        self._away: set[str] = set()

    async def tell(self) -> None:
        """Ask every part once and tell what has changed."""
        for part, probe in self._probes.items():
            answer = await probe.ask()
            if answer != "ok" and part not in self._away:
                self._away.add(part)
                get_logger().warning("part.lost", part=part, problem=answer)
            elif answer == "ok" and part in self._away:
                self._away.discard(part)
                get_logger().info("part.recovered", part=part)

    async def tell_forever(self) -> None:
        """Tell at once and every ASK_EVERY until cancelled."""
        while True:
            await self.tell()
            await asyncio.sleep(ASK_EVERY.total_seconds())
