"""PostgreSQL does what a claim store must do."""

from collections.abc import Iterator

import pytest

from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.claiming import ClaimingConformance
from tests.conformance.hosts import HostsConformance
from tests.conformance.leasing import LeasingConformance
from tests.conformance.operating import OperatingConformance
from tests.conformance.quarantine import QuarantineConformance
from tests.conformance.storages import StoragesConformance
from tests.conformance.sweeping import SweepingConformance
from tests.conformance.waits import WaitsConformance
from tests.conformance.watching import WatchingConformance


@pytest.fixture
def subject(database_url: str) -> Iterator[PostgresSubject]:
    """A store on a fresh database."""
    subject = PostgresSubject(database_url)
    yield subject
    subject.store.close()


class TestClaiming(ClaimingConformance):
    """Claims on PostgreSQL."""


class TestLeasing(LeasingConformance):
    """Leases on PostgreSQL."""


class TestSweeping(SweepingConformance):
    """Sweeps on PostgreSQL."""


class TestOperating(OperatingConformance):
    """Operation on PostgreSQL."""


class TestQuarantine(QuarantineConformance):
    """The quarantine on PostgreSQL."""


class TestWatching(WatchingConformance):
    """What is watched on PostgreSQL."""


class TestHosts(HostsConformance):
    """Artifact hosts on PostgreSQL."""


class TestStorages(StoragesConformance):
    """The known storage on PostgreSQL."""


class TestWaits(WaitsConformance):
    """Long waits on PostgreSQL."""
