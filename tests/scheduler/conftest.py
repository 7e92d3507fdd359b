"""A store, a queue and settings for the scheduler's tests."""

from collections.abc import Iterator

import pytest

from shared.config import Settings
from shared.queue import Queue
from tests.claims.postgres_subject import PostgresSubject
from tests.conftest import MakeSettings


@pytest.fixture
def subject(database_url: str) -> Iterator[PostgresSubject]:
    """A store on a fresh database, whose time the test passes."""
    subject = PostgresSubject(database_url)
    yield subject
    subject.store.close()


@pytest.fixture
def settings(make_settings: MakeSettings, redis_url: str, database_url: str) -> Settings:
    """Settings of a scheduler on fresh servers."""
    return make_settings(redis_url=redis_url, database_url=database_url)


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    """The real queue, empty."""
    queue = Queue(settings)
    yield queue
    queue.close()
