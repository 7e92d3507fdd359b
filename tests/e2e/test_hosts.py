"""An artifact host that goes away under the whole system: its jobs wait, and finish when it is back."""

from datetime import timedelta
from urllib.parse import urlsplit

from shared.sandbox.sume import File
from shared.sandbox.system import System
from tests.e2e.conftest import SOON, assert_stored, wait_until
from worker.circuit import OPENS_AFTER

JOBS = 3 * OPENS_AFTER


def test_a_host_that_fails_is_probed_and_its_jobs_finish_when_it_is_back(system: System) -> None:
    """Told in `stats` meanwhile; with MAX_ATTEMPTS 2 none could wait for long that used up attempts."""
    files = [system.sume.host(f"/job_{n}/a.png", b"\x89PNG %d" % n, status=503) for n in range(JOBS)]
    for number, file in enumerate(files):
        system.sume.add_job(f"job_{number}", artifacts=[file])
        assert system.sume.deliver(f"job_{number}") == [204]

    def open_circuits() -> list[tuple[str, int]]:
        return [(circuit.host, circuit.waiting) for circuit in system.store.stats().circuits]

    host = urlsplit(system.sume.media_url).netloc
    system.until(lambda: [name for name, _ in open_circuits()] == [host], what="the circuit open", within=SOON)
    system.until(lambda: open_circuits()[0][1] >= JOBS - OPENS_AFTER, what="the others waiting", within=SOON)
    asked = system.sume.media_requests.count()
    system.until(lambda: system.sume.media_requests.count() > asked + 2, what="a few probes", within=SOON)
    for file in files:
        file.status = None
    for number, file in enumerate(files):
        assert_done(system, f"job_{number}", file)
    assert open_circuits() == []
    attempts = [system.store.get_job(f"job_{number}") for number in range(JOBS)]
    assert sum(job.attempts for job in attempts if job is not None) <= system.sume.media_requests.count()


def assert_done(system: System, job_id: str, file: File) -> None:
    """Wait for the job and hold it to the bytes that Sume hosts; a probe's success frees all within a minute."""
    system.until(lambda: is_done(system, job_id), what=f"{job_id} done", within=timedelta(minutes=1))
    assert_stored(system, wait_until(system, job_id, "done"), [file])


def is_done(system: System, job_id: str) -> bool:
    """Whether the job has ended."""
    job = system.store.get_job(job_id)
    return job is not None and job.state == "done"
