"""Faults of our own processes and of the simulated Sume: killed, stopped, frozen, doubled, with a wrong clock."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial

from shared import clock
from shared.sandbox.family import descendants, load_psutil
from tests.chaos.fault import OUTSIDE, WORKER, Fault, SkippedError, Strike
from tests.chaos.world import ALWAYS, LEASE_SECONDS, World

psutil = load_psutil()
HOUR = 3600
LOOK_SECONDS = 0.05
STARTING_SECONDS = 4
"""So long after its start, the interpreter may still be importing what handles the signal."""
ENDS_WITHIN = timedelta(seconds=12)
WORKERS = ("worker-1", "worker-2")


@contextmanager
def taken_down(world: World, name: str) -> Iterator[None]:
    """Say that a process is down on purpose, and have it run again afterwards."""
    with world.down_lock:
        world.down.add(name)
    try:
        yield
    finally:
        process = world.processes[name]
        process.resume()
        if not process.running:
            process.start()
        with world.down_lock:
            world.down.discard(name)


@contextmanager
def killed(world: World, name: str) -> Iterator[None]:
    """SIGKILL, to all of its children too; started again at the end."""
    with taken_down(world, name):
        world.processes[name].kill()
        yield


@contextmanager
def terminated(world: World, name: str) -> Iterator[None]:
    """SIGTERM, as a deployment does; it must end by itself, with status 0 once it has had time to start."""
    with taken_down(world, name):
        young = clock.unix_seconds() - psutil.Process(world.processes[name].pid).create_time() < STARTING_SECONDS
        code = world.processes[name].terminate(within=ENDS_WITHIN)
        if code not in ({0, -signal.SIGTERM} if young else {0}):
            raise AssertionError(f"{name} ended with {code} after SIGTERM")
        yield


@contextmanager
def frozen(world: World, name: str) -> Iterator[None]:
    """SIGSTOP, then SIGCONT."""
    with taken_down(world, name):
        world.processes[name].pause()
        yield


@contextmanager
def beheaded(world: World, name: str) -> Iterator[None]:
    """SIGKILL to the parent alone; its children must end, when a receiver has answered what it took."""
    children = descendants(world.processes[name].pid)
    deadline = time.monotonic() + ENDS_WITHIN.total_seconds()
    with taken_down(world, name):
        world.processes[name].send(signal.SIGKILL)
        world.processes[name].wait()
        yield
    while alive := {pid for pid in children if is_alive(pid)}:
        if time.monotonic() > deadline:
            raise AssertionError(f"children of {name} outlived it: {sorted(alive)}")
        time.sleep(LOOK_SECONDS)


@contextmanager
def orphaned(world: World, name: str) -> Iterator[None]:
    """SIGKILL to one child; its parent replaces it."""
    children = sorted(descendants(world.processes[name].pid))
    if not children:
        raise SkippedError(f"{name} had no child at that moment")
    with suppress(ProcessLookupError):
        os.kill(children[0], signal.SIGKILL)
    yield


@contextmanager
def joined(world: World, names: tuple[str, ...]) -> Iterator[None]:
    """More schedulers beside the first, which then are killed."""
    for name in names:
        world.processes[name].start()
    try:
        yield
    finally:
        for name in names:
            world.processes[name].kill()


@contextmanager
def clock_moved(world: World, name: str, seconds: float) -> Iterator[None]:
    """The wall clock jumps, and jumps back at the end."""
    world.move_clock(name, seconds)
    try:
        yield
    finally:
        world.move_clock(name, 0)


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def fault(where: str, what: str, seconds: tuple[float, float], strike: Strike, *, row: str | None = None) -> Fault:
    """Return a fault of this lane; `row` is what it is called together with others of its kind."""
    return Fault(what, where, "processes", seconds, strike, row or ROWS[where.partition("-")[0]])


SCHEDULER = "scheduler: killed, stopped, none, two or three, with a wrong clock"
ROWS = {"api": "api: killed, stopped, frozen", "worker": WORKER, "scheduler": SCHEDULER, "sume": OUTSIDE}
CLOCKS = {"api": "api: with a clock that is an hour wrong", "worker-1": WORKER, "scheduler-1": SCHEDULER}
ASLEEP_SECONDS = (LEASE_SECONDS + 1, LEASE_SECONDS + 2.5)

PROCESS_FAULTS = (
    *(fault(name, "SIGKILL", (0.5, 2), partial(killed, name=name)) for name in ALWAYS),
    *(fault(name, "SIGTERM", (0.2, 1), partial(terminated, name=name)) for name in ALWAYS),
    *(fault(name, "SIGSTOP", (1, 3), partial(frozen, name=name)) for name in ALWAYS),
    *(fault(name, "asleep past its lease", ASLEEP_SECONDS, partial(frozen, name=name)) for name in WORKERS),
    *(fault(name, "parent alone SIGKILL", (1, 2), partial(beheaded, name=name)) for name in ("api", *WORKERS)),
    *(fault(name, "one child SIGKILL", (1, 2), partial(orphaned, name=name)) for name in ("api", *WORKERS)),
    *(
        fault(name, f"clock {sign}1 h", (3, 4), partial(clock_moved, name=name, seconds=seconds), row=row)
        for name, row in CLOCKS.items()
        for sign, seconds in (("+", HOUR), ("-", -HOUR))
    ),
    fault("scheduler", "two at once", (5, 7), partial(joined, names=("scheduler-2",))),
    fault("scheduler", "three at once", (5, 7), partial(joined, names=("scheduler-2", "scheduler-3"))),
    fault("scheduler", "none", (5, 7), partial(killed, name="scheduler-1")),
)
