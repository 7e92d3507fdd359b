"""A worker keeps a sign of life in the store, busy or idle, whatever becomes of the store."""

import threading
from datetime import timedelta

from shared.claims.watch import IntakeFacts, Role
from shared.errors import StoreUnavailableError
from worker.beat import BEAT_EVERY, beating

PATIENCE = 20


class Pulse:
    """A WatchStore that is away every other time."""

    def __init__(self) -> None:
        self.beats: list[str] = []
        self.three = threading.Event()
        self.tries = 0

    def beat(self, role: Role, name: str) -> None:
        """Count it, or fail."""
        self.tries += 1
        if self.tries % 2:
            raise StoreUnavailableError("away")
        self.beats.append(f"{role} {name}")
        if len(self.beats) == 3:
            self.three.set()

    def silent_for(self, role: Role) -> timedelta | None:
        """Not asked."""
        raise AssertionError(role)

    def intake_facts(self) -> IntakeFacts:
        """Not asked."""
        raise AssertionError


def test_it_beats_until_the_end_through_every_outage() -> None:
    """A beat that could not be written is followed by others, and none comes after the end."""
    store = Pulse()
    with beating(store, name="host.1", every=timedelta(milliseconds=1)):
        assert store.three.wait(PATIENCE)
        thread = next(thread for thread in threading.enumerate() if thread.name == "beat")
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert set(store.beats) == {"worker host.1"}


def test_it_beats_often_enough_to_be_seen() -> None:
    """Several beats may be missed before two minutes of silence are over."""
    assert timedelta(minutes=2) >= 4 * BEAT_EVERY
