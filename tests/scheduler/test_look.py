"""One look at an expected job ends in a claim, in waiting, or in giving up."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from scheduler.look import Looker, PollTimes
from shared import clock
from shared.claims.records import ExpectedJob, JobRecord
from shared.claims.states import Reason
from shared.errors import SumeApiError
from shared.event import EventName
from shared.intake import Intake
from shared.sume.api import JobStatus
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import event
from tests.scheduler.fakes import COMPLETED, FAILED, OPEN, FakeApi, FakeQueue, RecordingAlerts, seconds

BASE_URL = "https://api.open.sume.com"
TIMES = PollTimes(interval=seconds(30), maximum=seconds(3600), give_up=timedelta(days=7))


class Bench:
    """A looker on a real store, with everything else observable."""

    def __init__(self, subject: PostgresSubject, *, api: FakeApi | None) -> None:
        self.subject = subject
        self.queue = FakeQueue()
        self.alerts = RecordingAlerts()
        intake = Intake(subject.store, self.queue)
        self.looker = Looker(subject.store, intake, self.alerts, api=api, base_url=BASE_URL, times=TIMES)

    def take(self, *, status_url: str | None = None, after: timedelta = timedelta(0)) -> ExpectedJob:
        """Register job_a and take it as the poller does."""
        self.subject.store.expect("job_a", status_url=status_url, due_in=timedelta(0))
        self.subject.let_pass(after)
        [job] = self.subject.store.due_polls(limit=1, interval=TIMES.interval, maximum=TIMES.maximum)
        return job

    def record(self) -> JobRecord:
        """Return job_a as people see it."""
        record = self.subject.store.get_job("job_a")
        assert record is not None
        return record

    def payload(self) -> dict[str, object]:
        """Return what a worker is given."""
        payload: dict[str, object] = json.loads(self.subject.take("job_a").payload)
        return payload

    def due_in(self) -> float:
        """Return in how many whole seconds job_a is asked for again; the store's clock is this machine's."""
        record = self.record()
        assert record.next_look_at is not None
        return round((record.next_look_at - clock.now()).total_seconds() + 0.5)


def test_a_completed_job_is_claimed_with_its_files(subject: PostgresSubject) -> None:
    """The payload is the envelope of a delivery, its source poll, and it counts as no delivery."""
    bench = Bench(subject, api=FakeApi({"job_a": COMPLETED}))
    assert bench.looker.look(bench.take(status_url=f"{BASE_URL}/v1/jobs/job_a/status")) is None
    record = bench.record()
    assert (record.state, record.status, record.source, record.deliveries) == ("claimed", "OK", "poll", 0)
    assert bench.queue.sent_ids == ["job_a"]
    assert bench.payload() == {
        "event": "job.completed",
        "job_id": "job_a",
        "status": "OK",
        "source": "poll",
        "status_url": f"{BASE_URL}/v1/jobs/job_a/status",
        "artifacts": [{"url": "https://media.sume.com/a.png?signature=x", "type": "image"}],
    }


@pytest.mark.parametrize("ended", ["job.failed", "job.canceled"])
def test_a_failed_job_is_claimed_with_its_error(subject: PostgresSubject, ended: EventName) -> None:
    """Nobody asks for files that cannot be there."""
    api = FakeApi(
        {"job_a": JobStatus(ended=ended, error={"code": "nsfw", "message": "refused"})}, {"job_a": AssertionError()}
    )
    bench = Bench(subject, api=api)
    bench.looker.look(bench.take())
    record = bench.record()
    assert (record.state, record.event, record.status) == ("claimed", ended, "ERROR")
    assert bench.payload()["error"] == {"code": "nsfw", "message": "refused"}


def test_a_completed_job_whose_files_are_not_told_is_claimed_all_the_same(subject: PostgresSubject) -> None:
    """The claim must not wait for the list: the worker looks it up."""
    api = FakeApi({"job_a": COMPLETED}, {"job_a": SumeApiError("no list", http_status=500)})
    bench = Bench(subject, api=api)
    assert bench.looker.look(bench.take()) is None
    assert bench.record().state == "claimed"
    assert "artifacts" not in bench.payload()


def test_a_refused_result_is_reported_for_polling_to_pause(subject: PostgresSubject) -> None:
    """A 429 counts for all of polling whichever question met it."""
    refusal = SumeApiError("slow down", http_status=429, retry_after=60)
    bench = Bench(subject, api=FakeApi({"job_a": COMPLETED}, {"job_a": refusal}))
    assert bench.looker.look(bench.take()) is refusal
    assert bench.record().state == "claimed"


def test_an_empty_list_is_kept_as_an_answer(subject: PostgresSubject) -> None:
    """That Sume says there are no files is not the same as not having been told."""
    bench = Bench(subject, api=FakeApi({"job_a": COMPLETED}, {"job_a": []}))
    bench.looker.look(bench.take())
    assert bench.payload()["artifacts"] == []


def test_webhook_and_poll_at_once_are_one_claim(subject: PostgresSubject) -> None:
    """The webhook that arrives while Sume answers the poll wins, and one message is sent for both."""
    bench = Bench(subject, api=None)
    intake = Intake(subject.store, bench.queue)

    def meanwhile() -> JobStatus:
        intake.claim([event("job_a", payload='{"from":"webhook"}')])
        return COMPLETED

    api = FakeApi({"job_a": meanwhile})
    looker = Looker(subject.store, intake, bench.alerts, api=api, base_url=BASE_URL, times=TIMES)
    with capture_logs() as lines:
        looker.look(bench.take())
    assert bench.queue.sent_ids == ["job_a"]
    assert (bench.record().source, bench.record().deliveries) == ("webhook", 1)
    assert bench.payload() == {"from": "webhook"}
    assert [line["outcome"] for line in lines if line["event"] == "poll.done"] == ["known"]


def test_a_job_that_has_not_ended_waits_by_its_back_off(subject: PostgresSubject) -> None:
    """Nothing is claimed, nothing is buried."""
    bench = Bench(subject, api=FakeApi({"job_a": OPEN}))
    assert bench.looker.look(bench.take()) is None
    assert (bench.record().state, bench.due_in()) == ("expected", 30)


@pytest.mark.parametrize(
    ("status", "retry_after", "due"),
    [
        (503, None, 30),  # no header, garbage and -5 all read as None: the usual back-off
        (404, None, 30),
        (200, None, 30),  # another job's id, an HTML page
        (None, None, 30),
        (503, 120.0, 120),
        (404, 120.0, 120),
        (503, 0.0, 30),  # never sooner than POLL_INTERVAL_SECONDS
        (503, 1_000_000.0, 3600),  # never later than POLL_MAX_SECONDS
        (503, 1e300, 3600),
        (429, 120.0, 120),
        (429, None, 30),
        (401, 1_000_000.0, 3600),
    ],
)
def test_an_error_delays_the_job_within_bounds(
    subject: PostgresSubject, status: int | None, retry_after: float | None, due: int
) -> None:
    """Whatever Sume asks, the job is asked for again between interval and maximum, and is never claimed."""
    error = SumeApiError("no", http_status=status, retry_after=retry_after)
    bench = Bench(subject, api=FakeApi({"job_a": error}))
    assert bench.looker.look(bench.take()) is error
    assert (bench.record().state, bench.due_in()) == ("expected", due)


def test_a_maximum_below_the_interval_bounds_it_too() -> None:
    """POLL_MAX_SECONDS is the longest wait, whatever the other settings are."""
    times = PollTimes(interval=seconds(60), maximum=seconds(10), give_up=TIMES.give_up)
    assert times.wait_after(SumeApiError("no", http_status=429)) == seconds(10)


def test_an_error_about_one_job_is_told_and_an_outage_is_left_to_the_poller(subject: PostgresSubject) -> None:
    """A thousand jobs during one outage are not a thousand warnings."""
    for status, level in ((404, "warning"), (200, "warning"), (503, "debug"), (None, "debug"), (401, "debug")):
        bench = Bench(subject, api=FakeApi({"job_a": SumeApiError("no", http_status=status)}))
        job = bench.take()
        with capture_logs() as lines:
            bench.looker.look(job)
        assert [(line["event"], line["log_level"]) for line in lines] == [("poll.failed", level)]
        subject.let_pass(TIMES.maximum)


@pytest.mark.parametrize("answer", [OPEN, SumeApiError("GET x: 404", http_status=404), SumeApiError("away")])
def test_a_job_that_never_ends_is_given_up(subject: PostgresSubject, answer: JobStatus | SumeApiError) -> None:
    """It becomes visible to people, with what Sume said last, also when Sume could not be asked."""
    bench = Bench(subject, api=FakeApi({"job_a": answer}))
    bench.looker.look(bench.take(after=TIMES.give_up))
    record = bench.record()
    assert (record.state, record.reason) == ("dead", "poll_gave_up")
    assert "604800 s" in (record.error or "")
    assert bench.alerts.dead == [("job_a", Reason.POLL_GAVE_UP)]


def test_a_job_is_not_given_up_a_moment_early(subject: PostgresSubject) -> None:
    """Only once its whole time has passed."""
    bench = Bench(subject, api=FakeApi({"job_a": OPEN}))
    bench.looker.look(bench.take(after=TIMES.give_up - seconds(60)))
    assert bench.record().state == "expected"


def test_a_job_that_ended_at_the_last_moment_is_claimed(subject: PostgresSubject) -> None:
    """Asking comes before giving up, so that a scheduler that was away for a week loses nothing."""
    bench = Bench(subject, api=FakeApi({"job_a": FAILED}))
    bench.looker.look(bench.take(after=2 * TIMES.give_up))
    assert bench.record().state == "claimed"


def test_a_webhook_at_the_moment_of_giving_up_wins(subject: PostgresSubject) -> None:
    """Nobody is told of a dead job that lives."""
    bench = Bench(subject, api=FakeApi({"job_a": OPEN}))
    job = bench.take(after=TIMES.give_up)
    subject.deliver("job_a")
    bench.looker.look(job)
    assert (bench.record().state, bench.alerts.dead) == ("claimed", [])


def test_without_a_key_jobs_wait_and_are_given_up_in_time(subject: PostgresSubject) -> None:
    """A job that can never be asked for must become visible."""
    bench = Bench(subject, api=None)
    job = bench.take()
    bench.looker.look(job)
    assert bench.record().state == "expected"
    bench.looker.look(replace(job, expected_for=TIMES.give_up))
    assert bench.record().state == "dead"
    assert "SUME_API_KEY" in (bench.record().error or "")


@pytest.mark.parametrize("url", [f"{BASE_URL}/v1/jobs/job_a/status", None])
def test_a_status_url_of_sumes_origin_is_asked_as_it_is(subject: PostgresSubject, url: str | None) -> None:
    """And one that is not there is no reason for a warning."""
    api = FakeApi({"job_a": OPEN})
    bench = Bench(subject, api=api)
    with capture_logs() as lines:
        bench.looker.look(bench.take(status_url=url))
    assert api.status_urls == [url]
    assert [line for line in lines if line["log_level"] == "warning"] == []


def test_a_status_url_of_another_origin_is_warned_of(subject: PostgresSubject) -> None:
    """SumeApi asks the usual address instead; the log names the job and not the URL."""
    bench = Bench(subject, api=FakeApi({"job_a": OPEN}))
    with capture_logs() as lines:
        bench.looker.look(bench.take(status_url="https://evil.example/?key=hidden"))
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [(line["event"], line["job_id"]) for line in warnings] == [("poll.status_url_ignored", "job_a")]
    assert "hidden" not in str(lines)


def test_a_poll_is_one_line_without_urls(subject: PostgresSubject) -> None:
    """Signed URLs stay in the payload (I9)."""
    bench = Bench(subject, api=FakeApi({"job_a": COMPLETED}))
    with capture_logs() as lines:
        bench.looker.look(bench.take())
    [line] = lines
    assert (line["event"], line["outcome"], line["artifacts"]) == ("poll.done", "claimed", 1)
    assert "signature" not in str(line)
