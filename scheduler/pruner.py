"""The prune: details past retention are deleted, keys stay (I7)."""

import threading
from datetime import timedelta

from shared.claims.store import SweepStore
from shared.logs import get_logger

log = get_logger()

BATCH = 1_000


class Pruner:
    """Prunes in batches, so that no statement holds many rows for long."""

    def __init__(self, store: SweepStore, *, older_than: timedelta, batch: int = BATCH) -> None:
        self._store = store
        self._older_than = older_than
        self._batch = batch

    def prune(self, stop: threading.Event) -> None:
        """Delete all that is past retention; a retention of zero keeps everything. Raises StoreUnavailableError."""
        jobs = quarantine = 0
        while self._older_than and not stop.is_set():
            pruned = self._store.prune(older_than=self._older_than, limit=self._batch, dry_run=False)
            jobs, quarantine = jobs + pruned.jobs, quarantine + pruned.quarantine
            if pruned.jobs < self._batch:
                break
        if jobs or quarantine:
            log.info("prune.done", jobs=jobs, quarantine=quarantine)
