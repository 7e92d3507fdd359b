"""A connection for the event loop that was lost before it was used."""

import select
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from shared.claims.postgres.store import PostgresStore

STALE = timedelta(minutes=2)


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(database_url, stale=STALE)
    yield store
    store.close()


def test_a_connection_that_was_hung_up_before_its_first_batch_is_lost(store: PostgresStore) -> None:
    """It is never ready again, and says so: else it takes the place of one that would be."""
    connection: Any = store.open_claim_connection()
    hung_up = select.poll()
    hung_up.register(connection._descriptor, select.POLLIN)
    store.interrupt()
    assert hung_up.poll(10_000)
    assert not connection.ready()
    assert connection.lost
    connection.close()
