"""The schedule of faults of one run, a pure function of its seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tests.chaos.fault import Fault, Lane
from tests.chaos.process_faults import PROCESS_FAULTS
from tests.chaos.server_faults import SERVER_FAULTS

FAULTS = (*PROCESS_FAULTS, *SERVER_FAULTS)
LANES: tuple[Lane, ...] = ("processes", "servers")
PAUSE_SECONDS = (0.3, 2.0)
"""Between the end of one fault and the next one of its lane."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault, and the pause before it."""

    fault: Fault
    pause: float
    hold: float


def plan_faults(seed: int, lane: Lane, *, faults: Sequence[Fault] = FAULTS) -> Iterator[Step]:
    """Yield the lane's faults without end: each once in random order, then all of them anew."""
    chance = Random(f"faults {seed} {lane}")
    mine = [fault for fault in faults if fault.lane == lane]
    while mine:
        for fault in chance.sample(mine, len(mine)):
            yield Step(fault, chance.uniform(*PAUSE_SECONDS), chance.uniform(*fault.seconds))


def round_seconds(seed: int) -> float:
    """Return about how long it takes until every fault has struck once."""
    lengths = []
    for lane in LANES:
        steps = plan_faults(seed, lane)
        count = sum(fault.lane == lane for fault in FAULTS)
        lengths.append(sum(step.pause + step.hold for step, _ in zip(steps, range(count), strict=False)))
    return max(lengths)
