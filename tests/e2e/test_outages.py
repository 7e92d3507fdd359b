"""Outages of the servers under the whole system: nothing lost, nothing twice, over by itself."""

from datetime import timedelta
from pathlib import Path

import pytest

from shared.sandbox.sume import File
from shared.sandbox.system import System
from tests.e2e.conftest import SETTINGS, SOON, assert_stored, wait_until

BACK_WITHIN = timedelta(seconds=10)


def add_job(system: System, job_id: str) -> None:
    """Let Sume have a finished job with one file."""
    system.sume.add_job(job_id, artifacts=[system.sume.host(f"/{job_id}/a.png", job_id.encode() * 999)])


def assert_done(system: System, job_id: str) -> None:
    """Wait for the job and hold it to the bytes that Sume hosts."""
    [file] = system.sume.job(job_id).artifacts
    assert isinstance(file, File)
    assert_stored(system, wait_until(system, job_id, "done"), [file])


@pytest.mark.parametrize("how", ["refused", "frozen", "flushed"])
def test_without_redis_every_delivery_is_stored_and_every_job_ends(system: System, how: str) -> None:
    """The answer stays 204 within its time limit, and the sweep sends what Redis lost (I1)."""
    jobs = [f"job_{how}{n}" for n in range(5)]
    for job_id in jobs:
        add_job(system, job_id)
    if how == "refused":
        system.valkey.kill()
    else:
        system.valkey.pause()
    try:
        for job_id in jobs:
            assert system.sume.deliver(job_id) == [204]
        assert system.sume.attempts(jobs[0]) == [204]
    finally:
        if how == "flushed":
            system.valkey.kill()
            system.valkey.start()
        else:
            system.valkey.start()
    for job_id in jobs:
        assert_done(system, job_id)


def test_postgres_away_is_503_and_then_everything_goes_on(system: System) -> None:
    """Never 2xx while it is away; api, worker and scheduler are back within ten seconds, by themselves."""
    add_job(system, "job_away")
    add_job(system, "job_after")
    system.postgres.stop()
    answer = system.sume.post(b'{"event":"job.completed","job_id":"job_lost"}')
    assert answer == 503
    system.postgres.start()
    system.until(lambda: 204 in system.sume.deliver("job_away"), what="a 204", within=BACK_WITHIN)
    assert_done(system, "job_away")
    system.store.expect("job_after", status_url=None, due_in=timedelta(0))
    assert_done(system, "job_after")
    assert all(process.running for process in system.processes.values())


def test_a_host_that_is_not_listed_parks_its_jobs_until_it_is(tmp_path: Path) -> None:
    """They wait with the reason and without using attempts up, and finish once the setting allows it."""
    with System(tmp_path, settings=SETTINGS | {"ARTIFACT_HOSTS": "media.sume.com"}) as system:
        add_job(system, "job_parked")
        assert system.sume.deliver("job_parked") == [204]
        job = wait_until(system, "job_parked", "claimed", reason="host_not_allowed")
        assert job.attempts == 0
        assert system.processes["worker-1"].terminate(within=SOON) == 0
        system.environment["ARTIFACT_HOSTS"] = "127.0.0.1"
        system.run("worker-2", "worker")
        assert_done(system, "job_parked")
        finished = system.store.get_job("job_parked")
        assert finished is not None
        assert finished.attempts == 1


def test_an_artifact_host_that_is_away_kills_no_job(system: System) -> None:
    """Its failures are the world's: MAX_ATTEMPTS alone buries nothing, and the job ends with the outage."""
    file = system.sume.host("/outage/a.png", b"outage" * 99, status=503)
    system.sume.add_job("job_outage", artifacts=[file])
    system.sume.deliver("job_outage")
    attempts = system.settings.max_attempts + 2
    system.until(
        lambda: system.sume.media_requests.count("/outage/a.png") >= attempts, what=f"{attempts} attempts", within=SOON
    )
    wait_until(system, "job_outage", "claimed", reason="download_failed")
    file.status = None
    assert_done(system, "job_outage")


def test_the_receiver_killed_before_it_enqueued_costs_nothing(system: System) -> None:
    """The claim is stored, so the sweep finishes the job (I3)."""
    add_job(system, "job_orphan")
    system.valkey.pause()  # holds the message back between commit and enqueue
    assert system.sume.deliver("job_orphan") == [204]
    system.processes["api"].kill()
    system.valkey.resume()
    assert_done(system, "job_orphan")
    system.run("api", "api", "--port", str(system.api_port)).wait_for_http(f"{system.api_url}/readyz", within=SOON)
