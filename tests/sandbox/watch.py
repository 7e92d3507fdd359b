"""What the kernel says of a process, and waiting for it to say something else."""

import time
from collections.abc import Callable

import psutil  # type: ignore[import-untyped] # it ships no types


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def stopped(pid: int) -> bool:
    """Whether a process is frozen."""
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def eventually(condition: Callable[[], bool], *, within: float = 15) -> bool:
    """Whether a condition comes true within so many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
