"""The jobs that wait for artifact hosts: one at a time is sent to try, all of them once their host is back."""

import threading
from datetime import timedelta

from shared.claims.hosts import CircuitStore
from shared.logs import get_logger

log = get_logger()

BATCH = 500
SPREAD = timedelta(minutes=1)
"""Within which jobs become due whose host is back."""


class CircuitKeeper:
    """Decides when waiting jobs are due; the sweep then sends their messages."""

    def __init__(self, store: CircuitStore, *, within: timedelta, again: timedelta, batch: int = BATCH) -> None:
        self._store = store
        self._within = within
        self._again = again
        self._batch = batch

    def tend(self, _stop: threading.Event) -> None:
        """Do all that is due; raises StoreUnavailableError."""
        tended = self._store.tend_circuits(
            within=self._within, again=self._again, spread=min(SPREAD, self._again), limit=self._batch
        )
        if tended.called or tended.freed:
            log.info("circuits.tended", called=tended.called, freed=tended.freed)
