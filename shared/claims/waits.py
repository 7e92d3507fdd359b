"""What a claim store tells about jobs that have waited for long, and for what."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from shared.claims.states import Reason


@dataclass(frozen=True, slots=True)
class LongWait:
    """Claimed jobs whose latest attempts failed for the same reason."""

    reason: Reason
    jobs: int
    longest: timedelta
    """Since the oldest of them was claimed or requeued."""
    job_id: str
    """That oldest one."""


class WaitStore(Protocol):
    """The part of a store that knows what jobs wait for."""

    def long_waits(self, reasons: Collection[Reason], *, longer_than: timedelta) -> list[LongWait]:
        """Return what jobs have waited for longer than this; those that wait for a circuit are left out."""
        ...
