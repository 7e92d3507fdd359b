"""The jobs of one run, a pure function of its seed."""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from random import Random

from shared.sandbox.sume import Content

FILM_BYTES = 1_500_000
DRIP_BYTES, DRIP_WAIT = 65_536, timedelta(milliseconds=60)
"""A film takes a second and a half, so that faults strike in its middle."""
KINDS = {"plain": 80, "film": 2, "linger": 2, "failed": 7, "unlisted": 6, "expected": 3}
"""How the jobs divide, in percent: `unlisted` ones must be asked for, `expected` ones are never delivered."""
POISON = "poison"


@dataclass(frozen=True)
class PlannedFile:
    """One file of a job, as Sume hosts it."""

    name: str
    size: int
    seed: int
    slow: bool = False

    @cached_property
    def content(self) -> Content:
        """Its bytes."""
        return Content.generated(self.size, seed=self.seed)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job, how it is delivered, and so how it must end."""

    job_id: str
    kind: str
    files: tuple[PlannedFile, ...] = ()
    at_once: int = 1
    """How many deliveries of it are under way at the same time."""

    @property
    def outcome(self) -> str:
        """Sume's word for how it ended."""
        return "failed" if self.kind == "failed" else "completed"

    @property
    def delivered(self) -> bool:
        """Whether Sume tells of it; the others are registered, and must be found by polling."""
        return self.kind != "expected"


def plan_jobs(seed: int, count: int) -> list[PlannedJob]:
    """Return `count` jobs in the order of their delivery; the first one kills its worker every time."""
    chance = Random(f"jobs {seed}")
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=count)
    kinds[0] = POISON
    return [plan_job(f"job_{number:05}-{kind}", kind, chance) for number, kind in enumerate(kinds)]


def plan_job(job_id: str, kind: str, chance: Random) -> PlannedJob:
    """Return one job of a kind."""
    if kind == "film":
        files = [PlannedFile("film.mp4", FILM_BYTES, chance.getrandbits(32), slow=True)]
    elif kind == "failed":
        files = []
    else:
        count = 1 if kind == POISON else chance.choice((1, 1, 1, 2, 3))
        files = [
            PlannedFile(f"picture-{n}.png", chance.randint(1, 20_000), chance.getrandbits(32)) for n in range(count)
        ]
    return PlannedJob(job_id, kind, tuple(files), at_once=chance.choice((1, 1, 1, 1, 2, 3)))
