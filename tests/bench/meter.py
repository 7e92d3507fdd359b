"""How much of the machine other processes used meanwhile."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types

BUSY = ("user", "nice", "system", "steal")
"""Without interrupts: those of our own traffic cannot be told from others'."""
KERNEL_THREADS = 2
"""The parent of all of them; they write back to disk what we wrote. In a container it is not to be seen."""
TRIES = 50


@dataclass(frozen=True, slots=True)
class Clocks:
    """Three clocks read at one moment, in seconds: the wall's, all cores', and our processes'."""

    wall: float
    busy: float
    ours: float


@dataclass(slots=True)
class Reading:
    """What was used while something ran."""

    seconds: float = 0.0
    others: float = 0.0
    """Cores that processes other than ours used, a machine's neighbours on the same host included."""


def read_clocks() -> Clocks:
    """Read them all."""
    return Clocks(time.perf_counter(), busy_seconds(), our_seconds())


@contextmanager
def metered(read: Callable[[], Clocks] = read_clocks) -> Iterator[Reading]:
    """Fill in the reading at the end of the block."""
    reading, begun = Reading(), read()
    yield reading
    ended = read()
    reading.seconds = ended.wall - begun.wall
    others = (ended.busy - begun.busy) - (ended.ours - begun.ours)
    # The kernel counts cores in ticks and processes to the nanosecond, so a quiet run may come out below nothing.
    reading.others = max(0.0, others / reading.seconds)


def busy_seconds() -> float:
    """Return how long the machine's cores have worked since it was started."""
    times = psutil.cpu_times()
    return sum(getattr(times, kind, 0.0) for kind in BUSY)


def our_seconds(family: Callable[[], Iterable[Any]] | None = None) -> float:
    """Return how long our processes have worked; a child that was waited for is in its parent's time.

    One that ends between the reading of its parent and its own would be in neither, so all are read again.
    """
    family = family or our_family
    for _ in range(TRIES):
        try:
            return sum(sum(process.cpu_times()[:4]) for process in family())
        except psutil.NoSuchProcess:
            continue
    raise RuntimeError("our own processes end faster than they can be counted")


def our_family() -> list[Any]:
    """Return this process, all it started, parents before their children, and the kernel's threads.

    Servers that run as another user in sessions of their own are still children of whoever started them.
    """
    us = psutil.Process()
    return [us, *us.children(recursive=True), *kernel_threads()]


def kernel_threads() -> list[Any]:
    """Return those to be seen; in a container process 2 is any process, whose children are not ours."""
    try:
        if psutil.Process(KERNEL_THREADS).name() != "kthreadd":
            return []
    except psutil.NoSuchProcess:
        return []
    return [process for process in psutil.process_iter(["ppid"]) if process.info["ppid"] == KERNEL_THREADS]
