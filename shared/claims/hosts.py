"""What a store promises about artifact hosts: which of them fail for everybody, and who may try them meanwhile.

A circuit is *open* while jobs keep away from a host. It opens when different jobs in a row failed there with no
success in between, lets one job at a time probe the host, and closes with the first file that any job gets from it.
What nobody was told of a host for a day is forgotten.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    """How soon an open circuit is probed first, doubling, and how seldom at last."""

    first: timedelta
    longest: timedelta


@dataclass(frozen=True, slots=True)
class Circuit:
    """An artifact host whose circuit is open."""

    host: str
    failures: int
    """Attempts that failed there since its last success."""
    open_since: datetime
    next_probe_at: datetime
    waiting: int
    """Jobs that wait for it."""


@dataclass(frozen=True, slots=True)
class Tended:
    """What was done for waiting jobs."""

    called: int
    """Made due to probe a host."""
    freed: int
    """Made due because their host's circuit is closed."""


class HostStore(Protocol):
    """What a worker tells and asks about artifact hosts; it does so only when something failed there."""

    def host_failed(self, host: str, *, job_id: str, token: UUID, opens_after: int, times: ProbeTimes) -> bool:
        """Count a failure of a host; True for the one that opened its circuit, the `opens_after`th job in a row."""
        ...

    def host_worked(self, host: str) -> bool:
        """Forget every failure of a host; True when this closed its circuit."""
        ...

    def take_probe(self, host: str, *, job_id: str, token: UUID, times: ProbeTimes) -> timedelta | None:
        """Return None when the holder of this lease may ask the host now, else how long until somebody may.

        One job at a time probes: until its lease ends or the host is known to work, and no sooner than the back-off
        allows.
        """
        ...


class CircuitStore(Protocol):
    """What the scheduler does for jobs that wait for a host."""

    def tend_circuits(self, *, within: timedelta, again: timedelta, spread: timedelta, limit: int) -> Tended:
        """Call one waiting job for each host whose probe is due, free those of closed circuits, keep the others.

        A job that was called and does not probe `within` this time is no longer counted on. Freed jobs are due
        within `spread`, so that a host that is back meets no stampede. What is kept waiting looks again after `again`
        at the latest, without having been leased, so that a long outage costs nothing.
        """
        ...
