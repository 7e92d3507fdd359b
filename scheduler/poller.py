"""The poll: expected jobs that are due are looked at, several at a time, none waiting for another."""

import contextvars
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import timedelta

from scheduler.look import REFUSED_ALL, Looker, PollTimes, is_about_api
from shared.claims.store import SweepStore
from shared.errors import SumeApiError
from shared.logs import get_logger

log = get_logger()

LOOKS_AT_ONCE = 8
GLANCE_SECONDS = 0.5
"""While looks hang, jobs that become due are taken this soon."""
FAREWELL_SECONDS = 3
"""For looks under way to end when the scheduler stops; they may be abandoned then."""


class Poller:
    """Takes jobs only when a look is free, so that no job's turn passes while it waits for a slow answer.

    A 401 or 429 pauses this scheduler's polling as a whole; each other scheduler finds out by itself.
    """

    def __init__(self, store: SweepStore, looker: Looker, *, times: PollTimes) -> None:
        self._store = store
        self._looker = looker
        self._times = times
        self._pool = ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="look")
        self._looks: set[Future[SumeApiError | None]] = set()
        self._paused_until = 0.0
        self._problem: SumeApiError | None = None
        """Why Sume's API could not be asked when it was last tried."""

    def poll(self, stop: threading.Event) -> None:
        """Look at every job that is due.

        Raises StoreUnavailableError, and SumeApiError while Sume's API cannot be asked; looks under way go on then.
        """
        while not stop.is_set():
            self._start_looks()
            if not self._looks:
                break
            finished, _ = wait(self._looks, timeout=GLANCE_SECONDS, return_when=FIRST_COMPLETED)
            self._settle(finished)
        if stop.is_set():
            wait(self._looks, timeout=FAREWELL_SECONDS)
        if self._problem is not None:
            raise SumeApiError(str(self._problem), http_status=self._problem.http_status)

    def close(self) -> None:
        """Start no look any more; does not wait for those under way."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start_looks(self) -> None:
        free = LOOKS_AT_ONCE - len(self._looks)
        if free == 0 or time.monotonic() < self._paused_until:
            return
        due = self._store.due_polls(limit=free, interval=self._times.interval, maximum=self._times.maximum)
        for job in due:
            # A copy of the context, so that its log lines name the process too.
            self._looks.add(self._pool.submit(contextvars.copy_context().run, self._looker.look, job))

    def _settle(self, finished: set[Future[SumeApiError | None]]) -> None:
        """Note how Sume's API is; raise what a look raised, leaving the others finished for the next call."""
        for look in finished:
            self._looks.discard(look)
            error = look.result()
            if error is None or not is_about_api(error):
                self._problem = None
                continue
            if self._problem is None or self._problem.http_status != error.http_status:
                self._problem = error  # the first of its kind stands for all, so that it is told of once
            pause = self._times.wait_after(error) if error.http_status in REFUSED_ALL else None
            if pause is not None:
                self._pause(pause, error)

    def _pause(self, pause: timedelta, error: SumeApiError) -> None:
        until = time.monotonic() + pause.total_seconds()
        if until > self._paused_until:
            self._paused_until = until
            log.warning("poll.paused", seconds=pause.total_seconds(), error=str(error))
