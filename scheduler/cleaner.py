"""The clean-up: what killed workers left in Redis and in the storage is removed."""

import threading
from typing import Protocol

from shared.claims.store import SweepStore
from shared.logs import get_logger
from shared.storage.recognition import StorageGuard
from shared.storage.storage import Storage

log = get_logger()


class Registries(Protocol):
    """The part of the queue that is cleaned."""

    def clean_registries(self) -> None:
        """See Queue.clean_registries."""
        ...


class Cleaner:
    """Two duties that share no server, so that one being away leaves the other at work."""

    def __init__(self, store: SweepStore, queue: Registries, storage: Storage, guard: StorageGuard) -> None:
        self._store = store
        self._queue = queue
        self._storage = storage
        self._guard = guard

    def clean_registries(self, _stop: threading.Event) -> None:
        """Let RQ forget workers that are gone; raises QueueUnavailableError."""
        self._queue.clean_registries()

    def sweep_partials(self, _stop: threading.Event) -> None:
        """Delete the partial files of leases that ended, in the storage whose leases the store knows.

        Raises StoreUnavailableError, RetryableError or HeldError (storage_failed), and WrongStorageError.
        """
        self._guard.recognise()
        self._guard.require()
        leases = self._storage.sweep_partials(self._store.live_tokens)
        if leases:
            log.info("partials.swept", leases=leases)
