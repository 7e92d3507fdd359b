"""The tally: counts survive an outage of the database and are written once."""

import asyncio
from datetime import timedelta

from api.lane import Lane
from api.tally import Tally
from shared.errors import StoreUnavailableError
from tests.api.fakes import FakeCounters


def test_counts_that_could_not_be_written_are_kept_for_the_next_time() -> None:
    """A failing write loses no count, and a write that succeeds writes each count once."""
    store = FakeCounters()

    async def story() -> None:
        lane = Lane("test", threads=1, capacity=4)
        tally = Tally(store, lane=lane, within=timedelta(seconds=10))
        tally.refused("bad_signature", headers=["host", "x-signature"])
        tally.tested()
        store.problem = StoreUnavailableError("away")
        await tally.write()
        tally.refused("bad_signature", headers=["host"])
        tally.refused("missing_signature", headers=["host", "host", "x\0y", "a b", "x-sig", "x-" + "y" * 80])
        store.problem = None
        await tally.write()
        await tally.write()
        lane.close()

    asyncio.run(story())
    assert store.counts == {"refused:bad_signature": 2, "refused:missing_signature": 1, "webhook.test": 1}
    assert store.details == {"refused:bad_signature": "host", "refused:missing_signature": "host, x-sig"}
