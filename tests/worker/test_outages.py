"""Outages that last for hours: nothing dies of them, nothing is hammered, and all of it ends by itself."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from shared.claims.records import JobRecord, Lease
from shared.errors import PermanentError, StoreUnavailableError
from shared.sandbox.sume import Answer
from shared.sandbox.sume.media import File
from tests.conformance.subject import STALE
from tests.worker.bench import FIRST, Bench
from worker.circuit import OPENS_AFTER
from worker.handler import Job
from worker.stop import StopFlag

MINUTE = timedelta(minutes=1)
PROBES_OF_TWELVE_HOURS = 12 + 2 * 4 * 12
"""A quarter of an hour between two of them, half of that at least, and those of the first minutes."""


def tick(bench: Bench, time: timedelta) -> None:
    """Let time pass, do what the scheduler does then, and work on every message it sends."""
    bench.subject.let_pass(time)
    store = bench.subject.store
    store.tend_circuits(within=STALE, again=bench.pipeline.settings.seconds("retry_max"), spread=MINUTE, limit=500)
    for message in store.overdue_claims(limit=500, stale=STALE):
        bench.attempt(message.job_id)


def pass_hours(bench: Bench, hours: int) -> None:
    """Let hours pass in steps of five minutes."""
    for _ in range(hours * 12):
        tick(bench, 5 * MINUTE)


def claim_jobs(bench: Bench, count: int) -> tuple[list[str], list[File]]:
    """Claim jobs with a file each."""
    job_ids = [f"job_{number}" for number in range(count)]
    files = [bench.sume.host(f"{job_id}.png", FIRST) for job_id in job_ids]
    for job_id, file in zip(job_ids, files, strict=True):
        bench.claim(job_id, artifacts=[file])
    return job_ids, files


def answer(files: list[File], status: int | None) -> None:
    """Let the host of all files fail, or work again."""
    for file in files:
        file.status = status


def records(bench: Bench, job_ids: list[str]) -> list[JobRecord]:
    """Return the jobs as people see them."""
    return [bench.record(job_id) for job_id in job_ids]


def test_an_outage_of_hours_burns_no_attempt_of_those_that_wait(bench: Bench) -> None:
    """Opened by five jobs, told once, probed by one job at a time, and over for all as soon as one succeeds."""
    bench.change_settings(max_attempts=8, retry_for_seconds=86_400.0)
    job_ids, files = claim_jobs(bench, 20)
    answer(files, 503)
    for job_id in job_ids:
        bench.attempt(job_id)
    asked = bench.sume.media_requests.count()
    assert [record.attempts for record in records(bench, job_ids)] == [1] * OPENS_AFTER + [0] * 15
    assert {record.state for record in records(bench, job_ids)} == {"claimed"}
    assert "its circuit is open" in (bench.record("job_19").error or "")
    (circuit,) = bench.subject.store.stats().circuits
    assert (circuit.host, circuit.failures, circuit.waiting) == (urlsplit(bench.sume.media_url).netloc, OPENS_AFTER, 15)
    assert bench.record("job_19").next_look_at == circuit.next_probe_at

    pass_hours(bench, 12)
    assert {record.state for record in records(bench, job_ids)} == {"claimed"}
    assert bench.sume.media_requests.count() - asked <= PROBES_OF_TWELVE_HOURS
    assert sum(record.attempts for record in records(bench, job_ids)) <= OPENS_AFTER + PROBES_OF_TWELVE_HOURS
    assert max(len(record.timeline) for record in records(bench, job_ids)) < 40

    answer(files, None)
    pass_hours(bench, 1)
    assert {record.state for record in records(bench, job_ids)} == {"done"}
    assert bench.subject.store.stats().circuits == ()
    assert [told[0] for told in bench.people.told] == ["failing"]


def test_a_broken_file_does_not_open_the_circuit_of_its_host(bench: Bench) -> None:
    """Not even one that fails again and again, nor several among many that come."""
    good, bad = bench.sume.host("good.png", FIRST), bench.sume.host("bad.png", FIRST)
    bad.status = 503
    bench.change_settings(max_attempts=99)
    bench.claim("job_bad", artifacts=[bad])
    for _ in range(2 * OPENS_AFTER):
        bench.attempt("job_bad")
        bench.due()
    for number in range(2 * OPENS_AFTER):
        for name, file in (("bad", bad), ("good", good)):
            bench.claim(f"job_{name}_{number}", artifacts=[file])
            bench.attempt(f"job_{name}_{number}")
        assert bench.outcome(f"job_good_{number}") == ("done", None, 1)
    assert bench.subject.store.stats().circuits == ()


def test_a_permanent_failure_beside_an_open_circuit_decides(bench: Bench) -> None:
    """A job that can never be finished does not wait for a host."""
    job_ids, files = claim_jobs(bench, OPENS_AFTER)
    answer(files, 503)
    for job_id in job_ids:
        bench.attempt(job_id)
    bench.claim("job_demo", artifacts=[bench.sume.host("a.png", FIRST), "ftp://media.sume.com/x.png"])
    assert isinstance(bench.attempt(), PermanentError)
    assert bench.outcome() == ("dead", "url_not_allowed", 1)


def test_a_storage_with_little_room_uses_up_no_attempt(bench: Bench) -> None:
    """For hours: nothing is downloaded, one job after another looks again, and all is done once there is room."""
    job_ids, _ = claim_jobs(bench, 6)
    roomy = bench.pipeline.tools.publisher
    bench.change_tools(publisher=replace(roomy, min_free=2**62))
    for job_id in job_ids:
        bench.attempt(job_id)
    pass_hours(bench, 12)
    assert {(job.state, job.reason, job.attempts) for job in records(bench, job_ids)} == {
        ("claimed", "storage_full", 0)
    }
    assert "STORAGE_MIN_FREE_BYTES" in (bench.record("job_0").error or "")
    assert bench.subject.store.stats().waiting == {"storage_full": 6}
    assert bench.sume.media_requests.count() == 0
    assert {told[:2] for told in bench.people.told} == {("storage", "storage_full")}
    (wait,) = {job.next_look_at - job.updated_at <= 15 * MINUTE for job in records(bench, job_ids) if job.next_look_at}
    assert wait
    bench.change_tools(publisher=roomy)
    pass_hours(bench, 1)
    assert {job.state for job in records(bench, job_ids)} == {"done"}


def test_room_is_kept_for_a_file_whose_size_is_stated(bench: Bench) -> None:
    """It would fill what must stay free; smaller ones come meanwhile."""
    publisher = bench.pipeline.tools.publisher
    bench.change_tools(publisher=replace(publisher, min_free=1))
    large = bench.sume.host("large.png", FIRST, stated={"size_bytes": 2**62})
    bench.claim("job_large", artifacts=[large])
    bench.claim("job_small", artifacts=[FIRST])
    for job_id in ("job_large", "job_small"):
        bench.attempt(job_id)
    assert bench.outcome("job_large") == ("claimed", "storage_full", 0)
    assert bench.outcome("job_small") == ("done", None, 1)


def test_a_volume_that_goes_away_is_waited_for(bench: Bench) -> None:
    """Nothing is written into the empty folder, no attempt is used up, and all of it ends by itself."""
    job_ids, _ = claim_jobs(bench, 3)
    root = Path(bench.pipeline.tools.locate("."))
    root.rename(root.with_name("unmounted"))
    for job_id in job_ids:
        bench.attempt(job_id)
    pass_hours(bench, 12)
    assert {(job.state, job.reason, job.attempts) for job in records(bench, job_ids)} == {
        ("claimed", "storage_failed", 0)
    }
    assert not root.exists()
    assert {told[:2] for told in bench.people.told} == {("storage", "storage_failed")}
    root.with_name("unmounted").rename(root)
    pass_hours(bench, 1)
    assert {job.state for job in records(bench, job_ids)} == {"done"}


def test_a_handler_s_service_may_be_away_for_hours(bench: Bench) -> None:
    """Its calls back off to one a quarter of an hour and job; the files are not fetched again; nothing dies of it."""
    bench.change_settings(max_attempts=8, retry_for_seconds=86_400.0)
    away, calls = True, 0

    def handler(_job: Job) -> None:
        nonlocal calls
        calls += 1
        if away:
            raise ConnectionError("the shop is away")

    bench.handled_by(handler)
    job_ids, _ = claim_jobs(bench, 2)
    for job_id in job_ids:
        bench.attempt(job_id)
    pass_hours(bench, 6)
    assert bench.subject.store.stats().waiting == {"handler_failed": 2}
    assert calls <= 2 * PROBES_OF_TWELVE_HOURS
    assert bench.sume.media_requests.count() == 2
    away = False
    pass_hours(bench, 1)
    assert {job.state for job in records(bench, job_ids)} == {"done"}


def test_sume_s_api_may_be_away_for_hours(bench: Bench) -> None:
    """A job whose list must be looked up waits for it, asking ever more seldom."""
    bench.change_settings(max_attempts=8, retry_for_seconds=86_400.0)
    bench.claim("job_demo", artifacts=[FIRST], listed_at=None)
    bench.sume.override("job_demo", Answer(503, b"{}"))
    bench.attempt()
    pass_hours(bench, 12)
    assert bench.outcome()[:2] == ("claimed", "sume_api_failed")
    assert bench.sume.api_requests.count() <= PROBES_OF_TWELVE_HOURS + 8


class PassingStop(StopFlag):
    """Lets the time of every wait pass at once, and after some hours asks the worker to stop."""

    def __init__(self, hours: int) -> None:
        super().__init__()
        self.left = hours * 3600.0
        self.waits = 0

    def wait(self, seconds: float) -> bool:
        """See StopFlag.wait."""
        self.left -= seconds
        self.waits += 1
        return self.left <= 0


class AwayStore:
    """A database that cannot be reached."""

    def take_lease(self, *_arguments: object, **_named: object) -> Lease | None:
        """See LeaseStore.take_lease."""
        raise StoreUnavailableError("PostgreSQL cannot be reached")


def test_a_database_may_be_away_for_hours(bench: Bench) -> None:
    """The message in hand is kept, and the database asked every two seconds by each worker, no more often."""
    bench.claim("job_demo", artifacts=[FIRST])
    stop, store = PassingStop(hours=6), bench.pipeline.tools.store
    bench.change_tools(store=AwayStore())
    with pytest.raises(StoreUnavailableError):
        replace(bench.pipeline, stop=stop).process("job_demo")
    assert stop.waits <= 6 * 3600 / 2 + 5
    bench.change_tools(store=store)
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 1)
