"""What the receiver says of the servers it stands on."""

import asyncio

from structlog.testing import capture_logs

from api.health import Probe
from api.readiness import Readiness
from shared.errors import StoreUnavailableError


def test_what_is_away_is_told_once_and_so_is_its_return() -> None:
    """From the first look on, and not again while nothing changes."""
    away: list[bool] = []

    def check() -> None:
        if away[-1]:
            raise StoreUnavailableError("PostgreSQL cannot be reached: refused")

    async def story() -> None:
        probe = Probe("database", check)
        readiness = Readiness({"database": probe})
        for state in (True, True, False, False, True):
            away.append(state)
            probe._fresh_until = 0.0  # a second has passed
            await readiness.tell()
        probe.close()

    with capture_logs() as lines:
        asyncio.run(story())
    told = [(line["event"], line["part"]) for line in lines]
    assert told == [("part.lost", "database"), ("part.recovered", "database"), ("part.lost", "database")]
    assert lines[0]["problem"] == "PostgreSQL cannot be reached: refused"
