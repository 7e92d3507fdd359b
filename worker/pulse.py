"""What a worker process tells its supervisor: that it lives, and why it ended."""

import os
import threading
import time
from collections.abc import Callable
from enum import IntEnum

BEAT_SECONDS = 0.5


class Exit(IntEnum):
    """Why it ended, as its exit status; any other means that it died."""

    FINISHED = 0
    """It was asked to stop or, in burst mode, found the queue empty."""
    ORPHANED = 1
    """Its supervisor is gone, so nobody asks."""
    SETTINGS = 2
    RECYCLED = 3
    WRONG_STORAGE = 4
    """The storage is not the one the database knows, which is known only once both answered."""


class Pulse:
    """Writes a byte into the supervisor's pipe twice a second while `alive()` holds.

    A process that is frozen, or whose interpreter is held by code that never lets go, falls silent by itself.
    When the pipe has no reader any more the supervisor is dead and so is this process, at once: an orphan that
    goes on working would be nobody's to stop. The lease recovers its job (I6).
    """

    def __init__(self, pipe: int, *, alive: Callable[[], bool]) -> None:
        self._pipe = pipe
        self._alive = alive

    def start(self) -> None:
        """Beat from a thread of its own until the process ends."""
        os.set_blocking(self._pipe, False)
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def _beat(self) -> None:
        while True:
            if self._alive():
                try:
                    os.write(self._pipe, b".")
                except BlockingIOError:
                    pass  # the supervisor is frozen, not dead
                except OSError:
                    os._exit(Exit.ORPHANED)
            time.sleep(BEAT_SECONDS)
