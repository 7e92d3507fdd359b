"""The bond of a process to the one that started it, which it must not outlive."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with(parent: int, *, by: signal.Signals) -> bool:
    """Have the kernel send `by` when the parent dies; False when it is gone already.

    Guarantee: on Linux, at once, whatever this process is doing then. Elsewhere nothing is done, and whoever needs it
    must look at its parent now and then.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, by)
    return os.getppid() == parent  # it may have died before we asked
