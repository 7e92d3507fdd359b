"""One duty of the scheduler, repeated, whose failures harm nobody else."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

from shared.errors import SumeJobsError
from shared.logs import get_logger

log = get_logger()

Duty: TypeAlias = Callable[[threading.Event], None]
"""Does everything that is due now; returns early when the event is set. Any error is the agent's to handle."""


class Agent:
    """Performs one duty every so often, sooner while it fails, and tells once of each problem and once of its end."""

    def __init__(self, name: str, duty: Duty, *, every: timedelta, retry: timedelta | None = None) -> None:
        self.name = name
        self._duty = duty
        self._every = every
        self._retry = min(every, retry or every)
        self._told: set[str] = set()
        """What was logged since the duty began to fail."""

    def perform(self, stop: threading.Event) -> Exception | None:
        """Do the duty once; return what went wrong."""
        try:
            self._duty(stop)
        except Exception as error:  # noqa: BLE001 - a defect in one duty must not end the others
            self._note(error)
            return error
        if self._told:
            self._told.clear()
            log.info("duty.recovered", duty=self.name)
        return None

    def run(self, stop: threading.Event) -> None:
        """Perform the duty again and again until the event is set."""
        while not stop.is_set():
            pause = self._every if self.perform(stop) is None else self._retry
            stop.wait(pause.total_seconds())

    def _note(self, error: Exception) -> None:
        """Log each problem once, not at every round."""
        problem = f"{type(error).__name__}: {error}"
        if problem in self._told:
            return
        self._told.add(problem)
        if isinstance(error, SumeJobsError):
            log.warning("duty.failed", duty=self.name, error=str(error))
        else:
            log.error("duty.crashed", duty=self.name, exc_info=error)
