"""The wish that this worker stops."""

import time

SLICE_SECONDS = 0.05


class StopFlag:
    """A flag that a signal handler may set: a threading.Event takes a lock that the handler could find held."""

    def __init__(self) -> None:
        self._requested = False

    def set(self) -> None:
        """Ask the worker to stop; it stays asked."""
        self._requested = True

    def is_set(self) -> bool:
        """Whether the worker was asked to stop."""
        return self._requested

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the worker is asked to stop; return whether it is."""
        end = time.monotonic() + seconds
        while not self._requested and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
        return self._requested
