"""Artifact hosts as a store knows them, played in memory, and circuits on them."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from shared.claims.hosts import ProbeTimes
from shared.claims.records import Lease
from shared.errors import StoreUnavailableError
from worker.circuit import Circuits

TIMES = ProbeTimes(first=timedelta(seconds=5), longest=timedelta(minutes=15))


@dataclass
class PlayedHosts:
    """A HostStore that keeps what it was told, and answers as it is told to."""

    wait: timedelta | None = None
    opens: bool = False
    away: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)

    def host_failed(self, host: str, *, job_id: str, token: UUID, opens_after: int, times: ProbeTimes) -> bool:  # noqa: ARG002
        """See HostStore.host_failed."""
        self._note("failed", host)
        return self.opens

    def host_worked(self, host: str) -> bool:
        """See HostStore.host_worked."""
        self._note("worked", host)
        return True

    def take_probe(self, host: str, *, job_id: str, token: UUID, times: ProbeTimes) -> timedelta | None:  # noqa: ARG002
        """See HostStore.take_probe."""
        self._note("probe", host)
        return self.wait

    def _note(self, what: str, host: str) -> None:
        self.calls.append((what, host))
        if self.away:
            raise StoreUnavailableError("away")


@dataclass
class PlayedPeople:
    """Alerts about hosts alone."""

    told: list[str] = field(default_factory=list)

    def host_failing(self, host: str, *, error: str) -> bool:  # noqa: ARG002
        """See Alerts.host_failing."""
        self.told.append(host)
        return True


def circuits_of(lease: Lease, store: PlayedHosts | None = None, people: PlayedPeople | None = None) -> Circuits:
    """Return the circuits of one attempt."""
    return Circuits(lease, store or PlayedHosts(), people or PlayedPeople(), TIMES)
