"""One attempt at a job, and what becomes of the job."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from shared.claims.records import Message
from shared.errors import PermanentError, StoreUnavailableError
from tests.worker.bench import FIRST, SECOND, Bench
from worker.handler import Job


def test_a_completed_job_becomes_verified_files_once(bench: Bench) -> None:
    """Files, artifacts and manifest are there, and any further message finds nothing to do."""
    bench.claim("job_demo", artifacts=[FIRST, SECOND])
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 1)
    assert sorted(bench.files().values()) == [FIRST, SECOND]
    assert [stored.bytes for stored in bench.record().artifacts] == [len(FIRST), len(SECOND)]
    manifest = json.loads(bench.storage.read("job_demo/manifest.json") or b"")
    assert [entry["path"] for entry in manifest["artifacts"]] == [a.path for a in bench.record().artifacts]

    requests = bench.sume.media_requests.count()
    assert bench.attempt() is None
    assert bench.attempt("job_unknown") is None
    assert bench.sume.media_requests.count() == requests
    assert bench.record().attempts == 1


def test_the_worlds_failures_are_repeated_after_a_back_off_and_kill_only_when_they_last(bench: Bench) -> None:
    """With RETRY_FOR_SECONDS they must last that long too, however many attempts it takes."""
    bench.change_settings(retry_for_seconds=4 * 3600.0, retry_base_seconds=8.0)
    job = bench.claim("job_demo", artifacts=[FIRST])
    (file,) = job.artifacts
    file.status = 503  # type: ignore[union-attr]  # bytes are hosted as a File
    for attempt in range(1, 5):
        failure = bench.attempt()
        assert failure is not None
        assert failure.reason == "download_failed"
        record = bench.record()
        assert bench.outcome() == ("claimed", "download_failed", attempt)
        assert record.next_look_at is not None
        assert timedelta(seconds=4) * 2 ** (attempt - 1) <= record.next_look_at - record.updated_at
        assert record.next_look_at - record.updated_at <= timedelta(seconds=8) * 2 ** (attempt - 1)
        assert bench.attempt() is None  # not due yet
        bench.due()
    bench.attempt()
    assert bench.outcome() == ("dead", "download_failed", 5)
    assert [told[:3] for told in bench.people.told] == [("dead", "job_demo", "download_failed")]


def test_an_attempt_that_fails_keeps_what_it_published_for_the_next(bench: Bench) -> None:
    job = bench.claim("job_demo", artifacts=[FIRST, SECOND])
    good, bad = job.artifacts
    bad.status = 503  # type: ignore[union-attr]  # bytes are hosted as a File
    bench.attempt()
    assert list(bench.files().values()) == [FIRST]
    bad.status = None  # type: ignore[union-attr]  # the same
    bench.due()
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 2)
    paths = [request.path for request in bench.sume.media_requests.all()]
    assert paths.count(good.path) == 1  # type: ignore[union-attr]  # the same


def test_failures_that_are_no_outage_kill_by_attempts_alone(bench: Bench) -> None:
    """A wrong SHA-256 is a strike; strikes, not attempts, use the job up."""
    bench.change_settings(retry_for_seconds=3600.0 * 24)
    bad = bench.sume.host("bad.png", FIRST, stated={"sha256": "0" * 64})
    bench.claim("job_demo", artifacts=[bad])
    for state in ("claimed", "claimed", "dead"):
        bench.attempt()
        assert bench.outcome()[:2] == (state, "integrity_failed")
        bench.due()


def test_a_job_whose_strikes_are_used_up_by_lost_leases_is_buried_and_not_worked_on(bench: Bench) -> None:
    bench.claim("job_demo", artifacts=[FIRST])
    for _ in range(3):
        bench.subject.take("job_demo")
        bench.due()
        assert bench.subject.store.lose_leases(limit=10) == ["job_demo"]
    failure = bench.attempt()
    assert failure is not None
    assert bench.outcome() == ("dead", "worker_lost", 3)
    assert bench.sume.media_requests.count() == 0


def test_what_repeating_cannot_help_is_buried_at_once(bench: Bench) -> None:
    bench.claim("job_demo", artifacts=["ftp://media.sume.com/x.png"])
    bench.attempt()
    assert bench.outcome() == ("dead", "url_not_allowed", 1)
    bench.subject.store.claim_many([])
    bench.subject.plain_insert("job_plain")
    bench.change_tools(api=None)
    bench.attempt("job_plain")
    assert bench.outcome("job_plain") == ("dead", "no_artifact_list", 1)


def test_a_host_that_is_not_listed_parks_the_job_uncounted(bench: Bench) -> None:
    bench.claim("job_demo", artifacts=["https://elsewhere.example/x.png"])
    for _ in range(5):
        assert bench.attempt() is None
        assert bench.outcome() == ("claimed", "host_not_allowed", 0)
        bench.due()
    assert bench.people.told[0] == ("host", "job_demo", "elsewhere.example")


def test_a_failed_job_is_told_to_people_once_and_is_done_with_no_files(bench: Bench) -> None:
    bench.claim("job_demo", outcome="nsfw")
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 1)
    ((kind, job_id, event, error),) = bench.people.told
    assert (kind, job_id, event) == ("failed", "job_demo", "job.failed")
    assert error.startswith("content_rejected: ")
    assert bench.record().acknowledged_at is not None


def test_a_failed_job_nobody_was_told_of_is_done_but_not_acknowledged(bench: Bench) -> None:
    bench.people.reached = False
    bench.claim("job_demo", outcome="failed")
    bench.attempt()
    assert bench.outcome() == ("done", None, 1)
    assert bench.record().acknowledged_at is None


def test_a_failed_job_whose_handler_fails_is_not_told_twice(bench: Bench) -> None:
    bench.claim("job_demo", outcome="canceled")
    seen: list[Job] = []

    def handler(job: Job) -> None:
        seen.append(job)
        if job.attempt == 1:
            raise OSError("the ledger is away")

    bench.handled_by(handler)
    bench.attempt()
    assert bench.outcome() == ("claimed", "handler_failed", 1)
    bench.due()
    bench.attempt()
    assert bench.outcome() == ("done", None, 2)
    assert len(bench.people.told) == 1
    assert [job.status for job in seen] == ["ERROR", "ERROR"]


def test_a_handler_sees_the_job_with_its_stored_files_before_it_is_done(bench: Bench) -> None:
    states: list[str] = []
    jobs: list[Job] = []

    async def handler(job: Job) -> None:
        states.append(bench.record().state)
        jobs.append(job)

    bench.handled_by(handler)
    bench.claim("job_demo", artifacts=[FIRST])
    assert bench.attempt() is None
    (job,) = jobs
    assert states == ["running"]
    assert (job.job_id, job.event, job.status, job.error, job.attempt) == ("job_demo", "job.completed", "OK", None, 1)
    assert job.payload["job_id"] == "job_demo"
    (artifact,) = job.artifacts
    assert Path(artifact.path).is_absolute()
    assert Path(artifact.path).read_bytes() == FIRST
    assert (artifact.bytes, artifact.content_type, artifact.type) == (len(FIRST), "image/png", "image")


def test_a_handler_may_give_a_job_up(bench: Bench) -> None:
    def handler(_job: Job) -> None:
        raise PermanentError("the order was refunded")

    bench.handled_by(handler)
    bench.claim("job_demo", artifacts=[FIRST])
    bench.attempt()
    assert bench.outcome() == ("dead", "handler_failed", 1)
    assert bench.record().error == "the order was refunded"


def test_a_worker_that_has_to_stop_hands_the_job_back_and_another_continues(bench: Bench) -> None:
    """No attempt is counted, the job is due at once, and Redis being away does no harm."""
    job = bench.claim("job_demo", artifacts=[FIRST, SECOND])
    file = job.artifacts[1]
    file.stall_after = 3  # type: ignore[union-attr]  # bytes are hosted as a File
    bench.change_tools(publisher=publishing(bench, first=bench.stop.set))
    assert bench.attempt() is None
    assert bench.outcome() == ("claimed", "worker_stopped", 0)
    assert bench.queue.sent == [Message("job_demo", "job.completed", "OK", 1)]
    assert bench.subject.try_take("job_demo") is not None


def publishing(
    bench: Bench, *, first: Callable[[], None] = lambda: None, then: Callable[[], None] = lambda: None
) -> object:
    """Return a publisher that does something before and after each file."""
    real = bench.pipeline.tools.publisher

    class Publishing:
        storage = real.storage

        def publish(self, artifact: object, **how: object) -> object:
            first()
            published = real.publish(artifact, **how)  # type: ignore[arg-type]  # passed on as given
            then()
            return published

    return Publishing()


def test_a_worker_whose_lease_was_lost_changes_nothing(bench: Bench) -> None:
    """Another took the job while the handler ran: its row and its lease stay as the other left them (I5)."""
    bench.claim("job_demo", artifacts=[FIRST])

    def handler(_job: Job) -> None:
        bench.subject.let_pass(timedelta(minutes=2))
        assert bench.subject.store.lose_leases(limit=10) == ["job_demo"]
        bench.subject.take("job_demo")

    bench.handled_by(handler)
    assert bench.attempt() is None
    assert bench.outcome() == ("running", "worker_lost", 2)


def test_a_database_that_is_away_delays_an_attempt_and_wastes_no_message(bench: Bench) -> None:
    """Both when the lease is taken and when the outcome is written; a worker that has to stop does not wait."""
    bench.claim("job_demo", artifacts=[FIRST, SECOND])
    flaky = FlakyStore(bench.pipeline.tools.store, {"take_lease": 3, "record_artifact": 1, "finish": 2})
    bench.change_tools(store=flaky)
    assert bench.attempt() is None
    assert bench.outcome() == ("done", None, 1)
    assert set(flaky.failures.values()) == {0}

    bench.stop.set()
    bench.change_tools(store=FlakyStore(bench.pipeline.tools.store, {"take_lease": 1000}))
    with pytest.raises(StoreUnavailableError):
        bench.attempt("job_next")


class FlakyStore:
    """A store that is away for the first so many calls of some methods."""

    def __init__(self, store: object, failures: dict[str, int]) -> None:
        self._store = store
        self.failures = failures

    def __getattr__(self, name: str) -> object:
        def method(*args: object, **kwargs: object) -> object:
            if self.failures.get(name, 0) > 0:
                self.failures[name] -= 1
                raise StoreUnavailableError("PostgreSQL cannot be reached")
            return getattr(self._store, name)(*args, **kwargs)

        return method


def test_a_defect_of_ours_is_a_strike_and_leaves_no_job_running(bench: Bench) -> None:
    bench.claim("job_demo", artifacts=[FIRST])
    bench.change_tools(publisher=None)
    failure = bench.attempt()
    assert failure is not None
    assert bench.outcome() == ("claimed", "worker_lost", 1)
    assert bench.record().error == "AttributeError; see the worker's log"
