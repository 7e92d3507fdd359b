"""A story, its ending, and the comparisons that judge it."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from shared.claims.records import JobRecord
from shared.errors import SumeJobsError
from shared.sandbox.sume import File
from shared.sandbox.system import System
from shared.storage.paths import MANIFEST, job_folder

ENDS_WITHIN = timedelta(seconds=20)


@dataclass(slots=True)
class Ending:
    """How a story ended: the job's row, a sentence, and everything that is not as it must be."""

    job: JobRecord
    happened: str
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Story:
    """Something that happens to a job; `process` is whose log explains a wrong ending."""

    title: str
    process: str
    play: Callable[[System], Ending]


def wait_for_end(system: System, job_id: str, *, watch: Callable[[], None] = lambda: None) -> JobRecord:
    """Return the job's row once it is done or dead, calling `watch` often meanwhile."""

    def ended() -> bool:
        watch()
        job = system.store.get_job(job_id)
        return job is not None and job.state in {"done", "dead"}

    system.until(ended, what=f"the end of {job_id}", within=ENDS_WITHIN)
    job = system.store.get_job(job_id)
    if job is None:
        raise SumeJobsError(f"{job_id} is gone")
    return job


def differs(what: str, found: object, wanted: object) -> list[str]:
    """Return the one problem there is when something is not what it must be."""
    return [] if found == wanted else [f"{what}: {found!r} instead of {wanted!r}"]


def row_problems(job: JobRecord, **wanted: object) -> list[str]:
    """Return every column that differs from what is wanted."""
    return [problem for name, value in wanted.items() for problem in differs(name, getattr(job, name), value)]


def file_problems(storage: Path, job: JobRecord, files: Sequence[File]) -> list[str]:
    """Return how the job's records and its folder below `storage` differ from the files that Sume hosts."""
    folder = storage / job_folder(job.job_id)
    wanted = [(file.content.size, file.content.sha256) for file in files]
    problems = differs("recorded files", [(artifact.bytes, artifact.sha256) for artifact in job.artifacts], wanted)
    published = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    named = [artifact.path.rpartition("/")[2] for artifact in job.artifacts]
    problems += differs("folder", published, sorted([*named, MANIFEST]) if files else [])
    for name, (size, sha256) in zip(named, wanted, strict=False):
        if name in published:
            content = (folder / name).read_bytes()
            problems += differs(f"{name} on disk", (len(content), hashlib.sha256(content).hexdigest()), (size, sha256))
    return problems
