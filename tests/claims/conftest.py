"""A server to break, and a store on it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from shared.claims.postgres.store import PostgresStore
from shared.claims.schema import migrate
from shared.sandbox.postgres import Postgres
from tests.conformance.subject import STALE


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that a test may break."""
    with Postgres(options={"fsync": "off"}) as server:
        migrate(server.url)
        yield server


@pytest.fixture
def store(own_postgres: Postgres) -> Iterator[PostgresStore]:
    """A store that is not patient."""
    store = PostgresStore(own_postgres.url, stale=STALE, patience=timedelta(seconds=1.5))
    yield store
    store.close()
