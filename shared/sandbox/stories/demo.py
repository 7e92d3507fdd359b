"""One run of the demo: starts everything, plays every story, audits what is left."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.audit import Audit, Auditor
from shared.claims.records import JobRecord
from shared.errors import SumeJobsError
from shared.sandbox.stories.story import Story
from shared.sandbox.stories.told import STORIES
from shared.sandbox.system import System
from shared.storage import open_storage

SHORT = {"LEASE_SECONDS": "4", "SWEEP_INTERVAL_SECONDS": "1", "POLL_INTERVAL_SECONDS": "1", "CLAIM_STALE_SECONDS": "5"}
"""So that what takes minutes in production takes seconds."""
LOG_TAIL = 15


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one story; `job` is None where it had no ending."""

    title: str
    happened: str
    seconds: float
    job: JobRecord | None = None
    problems: tuple[str, ...] = ()
    log_tail: tuple[str, ...] = ()
    """The last lines of the log that explains the problems."""

    @property
    def ok(self) -> bool:
        """Whether it ended as it must."""
        return not self.problems


@dataclass(slots=True)
class Result:
    """What became of the demo."""

    verdicts: list[Verdict] = field(default_factory=list)
    audit: Audit | None = None
    seconds: float = 0.0
    kept: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every story ended as it must, and everything is accounted for."""
        return self.audit is not None and self.audit.ok and all(verdict.ok for verdict in self.verdicts)


def play(
    *,
    keep: bool = False,
    stories: Iterable[Story] = STORIES,
    settings: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Result:
    """Play the stories on a system of their own, which is stopped and, unless `keep`, deleted at the end.

    `tell` is given a line before each step. Raises SumeJobsError when the system itself cannot be started.
    """
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="sume-jobs-demo-"))
    result = Result(kept=folder if keep else None)
    try:
        tell("starting PostgreSQL, Valkey, a simulated Sume, api, scheduler and two workers")
        with System(folder, workers=2, settings={**SHORT, **(settings or {})}) as system:
            for story in stories:
                tell(story.title)
                result.verdicts.append(judge(system, story))
            tell("audit")
            result.audit = Auditor(system.store, open_storage(system.settings)).audit()
            tell("stopping everything")
    finally:
        if not keep:
            shutil.rmtree(folder)
    result.seconds = time.monotonic() - started
    return result


def judge(system: System, story: Story) -> Verdict:
    """Play one story and compare its ending with how it must end."""
    started = time.monotonic()
    try:
        ending = story.play(system)
    except SumeJobsError as error:
        seconds = time.monotonic() - started
        return Verdict(story.title, "no end", seconds, problems=(str(error),), log_tail=tail(system, story))
    seconds = time.monotonic() - started
    found = tuple(ending.problems)
    return Verdict(
        story.title, ending.happened, seconds, ending.job, found, log_tail=tail(system, story) if found else ()
    )


def tail(system: System, story: Story) -> tuple[str, ...]:
    """Return the last lines that the story's process, or all of its kind, have logged."""
    lines: list[str] = []
    for name, process in system.processes.items():
        if name.startswith(story.process):
            lines += [f"{name}: {line}" for line in process.log().splitlines()[-LOG_TAIL:]]
    return tuple(lines)
