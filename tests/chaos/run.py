"""One chaos run: traffic and faults side by side, then calm, then the reckoning."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from shared import clock
from shared.errors import StoreUnavailableError, SumeJobsError
from tests.chaos.fault import Lane, SkippedError
from tests.chaos.jobs import plan_jobs
from tests.chaos.judgements import Struck
from tests.chaos.reckoning import reckon
from tests.chaos.schedule import LANES, Step, plan_faults
from tests.chaos.traffic import Answer, Traffic
from tests.chaos.witness import Witness
from tests.chaos.world import World

CALM_WITHIN_SECONDS = 240
LOOK_SECONDS = 0.5
TRAFFIC_SHARE = 0.95
"""Of the time of the faults, in which all jobs are delivered for the first time."""


@dataclass(slots=True)
class Run:
    """What happened in one run; `problems` is empty when nothing was lost and nothing came twice."""

    seed: int
    jobs: int
    seconds: float = 0.0
    calm_seconds: float = 0.0
    """From the end of all faults until every job had ended."""
    struck: list[Struck] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    done_at: list[float] = field(default_factory=list)
    """In order, in Unix seconds."""
    handled: int = 0
    problems: list[str] = field(default_factory=list)


def play(folder: Path, *, seed: int, jobs: int, length: timedelta) -> Run:
    """Play one seed in an empty folder for about `length`, and reckon."""
    run = Run(seed, jobs)
    started = time.monotonic()
    with World(folder, plan_jobs(seed, jobs), seed=seed) as world:
        traffic = Traffic(world, length=length * TRAFFIC_SHARE)
        witness = Witness(world.disk.root, world.jobs)
        traffic.start()
        try:
            strike_all(world, run, witness, length)
            world.settle()
            traffic.stop_replaying()
            run.calm_seconds = await_calm(world, traffic, run)
            run.problems += witness.look()
        finally:
            traffic.close()
        run.answers = list(traffic.answers)
        reckon(world, traffic, run)
    run.seconds = time.monotonic() - started
    return run


def strike_all(world: World, run: Run, witness: Witness, length: timedelta) -> None:
    """Let each lane strike until time is up, watching for processes that end by themselves."""
    over = threading.Event()
    with ThreadPoolExecutor(len(LANES)) as pool:
        lanes = [pool.submit(strike_lane, world, run, lane, over) for lane in LANES]
        deadline = time.monotonic() + length.total_seconds()
        try:
            while time.monotonic() < deadline and not any(lane.done() for lane in lanes):
                watch(world, run)
                run.problems += witness.look()
                time.sleep(LOOK_SECONDS)
        finally:
            over.set()
        for lane in lanes:
            lane.result()


def strike_lane(world: World, run: Run, lane: Lane, over: threading.Event) -> None:
    """Do one fault after the other until told to stop."""
    for step in plan_faults(run.seed, lane):
        if over.wait(step.pause):
            return
        strike(world, run, step, over)


def strike(world: World, run: Run, step: Step, over: threading.Event) -> None:
    """Do one fault and undo it."""
    began = clock.unix_seconds()
    try:
        with step.fault.strike(world):
            over.wait(step.hold)
    except SkippedError as skipped:
        run.skipped[step.fault.name] = str(skipped)
        return
    except (AssertionError, SumeJobsError) as error:
        run.problems.append(f"{step.fault.name}: {error}")
    run.struck.append(Struck(step.fault.name, began, clock.unix_seconds()))


def watch(world: World, run: Run) -> None:
    """Note, and start again, what ended by itself: no fault may end a process of ours."""
    for name, code in world.ended_by_themselves().items():
        run.problems.append(f"{name} ended by itself with {code}")
        world.processes[name].start()


def await_calm(world: World, traffic: Traffic, run: Run) -> float:
    """Return how long it took until everything was delivered and every job had ended, or the time allowed for it."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < CALM_WITHIN_SECONDS:
        watch(world, run)
        if traffic.delivered() and all_ended(world):
            return passed
        time.sleep(LOOK_SECONDS)
    return passed


def all_ended(world: World) -> bool:
    """Whether no job waits any more."""
    try:
        states = world.store.stats().states
    except StoreUnavailableError:
        return False
    return not any(states.get(state) for state in ("expected", "claimed", "running"))
