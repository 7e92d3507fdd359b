"""Of contradicting deliveries PostgreSQL keeps the first, and shows that there were others."""

from collections.abc import Iterator

import pytest

from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.conflicts import ConflictConformance


@pytest.fixture
def subject(database_url: str) -> Iterator[PostgresSubject]:
    """A store on a fresh database."""
    subject = PostgresSubject(database_url)
    yield subject
    subject.store.close()


class TestConflicts(ConflictConformance):
    """Conflicts on PostgreSQL."""
