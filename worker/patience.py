"""How long a wait of the downloader may last, and who may end it earlier."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self, TypeAlias

Check: TypeAlias = Callable[[], None]
"""Called often, from any thread; raises when the work must stop (shutdown, lost lease, deadline)."""

Clock: TypeAlias = Callable[[], float]
"""Returns seconds that only ever grow; a test passes its own, to let hours pass."""

SLICE = 0.5
"""Seconds of waiting between two calls of the check."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Every wait ends after `stall`, and within a slice of the moment `check` raises."""

    check: Check
    stall: timedelta
    clock: Clock = time.monotonic

    def slices(self) -> Iterator[float]:
        """Yield how many seconds to wait next, until the patience is over; then raise TimeoutError."""
        end = self.clock() + self.stall.total_seconds()
        while (left := end - self.clock()) > 0:
            self.check()
            yield min(left, SLICE)
        raise TimeoutError

    def share(self, parts: int) -> Self:
        """Return the patience for one of several things tried in turn."""
        return replace(self, stall=self.stall / parts)

    def pause(self, seconds: float) -> None:
        """Do nothing for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, SLICE))
