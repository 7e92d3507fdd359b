"""What a fault is: a name, a victim, how long it lasts, and how it is done and undone."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.chaos.world import World

Lane: TypeAlias = Literal["processes", "servers"]
"""Faults of one lane come one after the other; the lanes go on side by side."""
Strike: TypeAlias = Callable[[World], AbstractContextManager[None]]
"""Does the fault on entering, undoes it on leaving; raises SkippedError when it cannot be done here."""


WORKER = "worker: killed, stopped, asleep past its lease, cut off, with a wrong clock"
OUTSIDE = "artifact host or storage: killed, frozen, full, read-only"
"""Rows of the published matrix that both lanes add to."""


class SkippedError(Exception):
    """The fault could not be done on this machine or at this moment; the text says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault at one place."""

    what: str
    where: str
    lane: Lane
    seconds: tuple[float, float]
    """Between which its duration is drawn."""
    strike: Strike
    row: str
    """The row of the published matrix, which several may share."""

    @property
    def name(self) -> str:
        """What a schedule calls it."""
        return f"{self.where}: {self.what}"
