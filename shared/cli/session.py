"""What a command works with, opened from the settings and given back at its end."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from shared.claims import open_store
from shared.claims.store import Store
from shared.config import Settings
from shared.queue import Queue, open_queue


@contextmanager
def store_session() -> Iterator[tuple[Settings, Store]]:
    """Lend settings and store; raises SettingsError when DATABASE_URL is missing."""
    settings = Settings.load("DATABASE_URL")
    with closing(open_store(settings)) as store:
        yield settings, store


@contextmanager
def full_session() -> Iterator[tuple[Settings, Store, Queue]]:
    """Lend settings, store and queue; raises SettingsError when DATABASE_URL or REDIS_URL is missing."""
    settings = Settings.load("DATABASE_URL", "REDIS_URL")
    with closing(open_store(settings)) as store, closing(open_queue(settings)) as queue:
        yield settings, store, queue
