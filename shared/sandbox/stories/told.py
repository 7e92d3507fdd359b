"""The stories as they are told: what Sume does, and how the job must end."""

import time
from collections.abc import Sequence
from datetime import timedelta

from shared.sandbox.picture import png
from shared.sandbox.process import Process
from shared.sandbox.stories.story import Ending, Story, differs, file_problems, row_problems, wait_for_end
from shared.sandbox.sume import Content, File
from shared.sandbox.system import System
from shared.sandbox.wheels import SandboxError
from shared.storage.paths import job_folder

FILM_BYTES = 6_000_000
KILLED_AT = 2_000_000
STALLS_WITHIN = timedelta(seconds=15)
DUE_IN = timedelta(seconds=1)


def film(system: System, path: str) -> File:
    """Host some megabytes."""
    return system.sume.host(path, Content.generated(FILM_BYTES), content_type="video/mp4", type="video")


def completed(system: System) -> Ending:
    """A job is delivered once, and its two files arrive."""
    files = [system.sume.host("demo/landscape.png", png(seed=1)), film(system, "demo/film.mp4")]
    system.sume.add_job("job_completed", artifacts=files)
    answers = system.sume.deliver("job_completed")
    job = wait_for_end(system, "job_completed")
    problems = differs("answers", answers, [204])
    problems += row_problems(job, state="done", status="OK", deliveries=1, attempts=1, source="webhook")
    problems += file_problems(system.settings.storage_path, job, files)
    return Ending(job, f"204; {len(job.artifacts)} files, each with the SHA-256 that Sume hosts", problems)


def failed(system: System) -> Ending:
    """Sume could not render a job: it is handled, with nothing to download."""
    system.sume.add_job("job_failed", outcome="failed")
    answers = system.sume.deliver("job_failed")
    job = wait_for_end(system, "job_failed")
    problems = differs("answers", answers, [204])
    problems += row_problems(job, state="done", event="job.failed", status="ERROR", deliveries=1, attempts=1)
    problems += [] if job.error and "generation_failed" in job.error else [f"error: {job.error!r} is not Sume's"]
    problems += file_problems(system.settings.storage_path, job, [])
    return Ending(job, f"204; done as ERROR: {job.error}", problems)


def delivered_three_times(system: System) -> Ending:
    """The same event comes three times at once, and counts once."""
    files = [system.sume.host("demo/once.png", png(seed=2))]
    system.sume.add_job("job_three_times", artifacts=files)
    answers = system.sume.deliver("job_three_times", times=3, at_once=True)
    job = wait_for_end(system, "job_three_times")
    problems = differs("answers", answers, [204, 204, 204])
    problems += row_problems(job, state="done", status="OK", deliveries=3, attempts=1)
    problems += differs("downloads", system.sume.media_requests.count(files[0].path), 1)
    problems += file_problems(system.settings.storage_path, job, files)
    return Ending(job, "3 x 204; claimed once, downloaded once", problems)


def never_delivered(system: System) -> Ending:
    """A job is registered, its webhook never comes, and polling finds that it ended."""
    files = [system.sume.host("demo/polled.png", png(seed=3))]
    system.sume.add_job("job_never_delivered", artifacts=files)
    known = system.store.expect("job_never_delivered", status_url=None, due_in=DUE_IN)
    job = wait_for_end(system, "job_never_delivered")
    problems = differs("newly registered", known, wanted=True)
    problems += row_problems(job, state="done", status="OK", source="poll", deliveries=0, attempts=1)
    problems += file_problems(system.settings.storage_path, job, files)
    return Ending(job, "no webhook; Sume was asked, and the files fetched", problems)


def worker_killed(system: System) -> Ending:
    """A worker is killed with SIGKILL in mid-download, and another one finishes."""
    files = [film(system, "demo/killed.mp4")]
    files[0].stall_after = KILLED_AT
    system.sume.add_job("job_worker_killed", artifacts=files)
    answers = system.sume.deliver("job_worker_killed")
    if not files[0].stalled.wait(STALLS_WITHIN.total_seconds()):
        raise SandboxError("no worker began the download")
    [killed] = holders(system, "job_worker_killed")
    killed.kill()
    started = time.monotonic()
    seen: list[str] = visible(system, "job_worker_killed", files)
    files[0].release()
    job = wait_for_end(
        system, "job_worker_killed", watch=lambda: seen.extend(visible(system, "job_worker_killed", files))
    )
    took = timedelta(seconds=time.monotonic() - started)
    allowed = 2 * system.settings.seconds("lease") + system.settings.seconds("sweep_interval")
    problems = differs("answers", answers, [204])
    problems += differs("partial files seen", seen, [])
    problems += [] if took <= allowed else [f"took {took.total_seconds():.1f} s after the kill, over {allowed}"]
    problems += row_problems(job, state="done", status="OK", deliveries=1, attempts=2)
    finishers = [process.name for process in holders(system, "job_worker_killed") if process is not killed]
    problems += differs("workers that finished it", len(finishers), 1)
    problems += file_problems(system.settings.storage_path, job, files)
    happened = f"{killed.name} killed; {', '.join(finishers)} finished it {took.total_seconds():.1f} s later"
    return Ending(job, happened, problems)


def holders(system: System, job_id: str) -> list[Process]:
    """Return the workers that have taken a lease of this job, by what they logged."""
    workers = [process for name, process in system.processes.items() if name.startswith("worker")]
    return [
        process
        for process in workers
        if any("lease.taken" in line and f'"{job_id}"' in line for line in process.log().splitlines())
    ]


def visible(system: System, job_id: str, files: Sequence[File]) -> list[str]:
    """Return the published files of a job that are not as large as they must be."""
    folder = system.settings.storage_path / job_folder(job_id)
    sizes = {file.content.size for file in files}
    published = list(folder.glob("[0-9]*")) if folder.is_dir() else []
    return [path.name for path in published if path.stat().st_size not in sizes]


STORIES = (
    Story("completed", "worker", completed),
    Story("failed", "worker", failed),
    Story("delivered three times at once", "api", delivered_three_times),
    Story("webhook never came", "scheduler", never_delivered),
    Story("worker killed in mid-download", "worker", worker_killed),
)
