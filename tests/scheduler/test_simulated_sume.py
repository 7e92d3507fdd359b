"""Polling against the simulated Sume, through the official client."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from email.utils import format_datetime

import pytest
from structlog.testing import capture_logs

from scheduler.look import Looker, PollTimes
from scheduler.poller import Poller
from shared import clock
from shared.errors import SumeApiError
from shared.intake import Intake
from shared.sandbox.sume import Answer, Sume
from shared.sume.api import SumeApi
from tests.claims.postgres_subject import PostgresSubject
from tests.scheduler.fakes import NEVER, FakeQueue, RecordingAlerts, seconds

TIMES = PollTimes(interval=seconds(30), maximum=seconds(3600), give_up=timedelta(days=7))
Due = Callable[[str], int]


@pytest.fixture
def sume() -> Iterator[Sume]:
    with Sume(secret="s") as sume:
        yield sume


@pytest.fixture
def make_poller(subject: PostgresSubject, sume: Sume) -> Iterator[Callable[..., Poller]]:
    """Return a maker of pollers that ask the simulated Sume, with a given key and patience."""
    with ExitStack() as opened:

        def make(*, api_key: str = sume.api_key, timeout: timedelta = timedelta(seconds=10)) -> Poller:
            api = opened.enter_context(closing(SumeApi(sume.api_url, api_key=api_key, timeout=timeout)))
            looker = Looker(
                subject.store,
                Intake(subject.store, FakeQueue()),
                RecordingAlerts(),
                api=api,
                base_url=sume.api_url,
                times=TIMES,
            )
            return opened.enter_context(closing(Poller(subject.store, looker, times=TIMES)))

        yield make


@pytest.fixture
def expect(subject: PostgresSubject) -> Callable[..., None]:
    """Return what registers a job that is due now."""

    def expect(job_id: str, *, status_url: str | None = None) -> None:
        subject.store.expect(job_id, status_url=status_url, due_in=timedelta(0))

    return expect


@pytest.fixture
def due_in(subject: PostgresSubject) -> Due:
    """Return what tells in how many seconds a job is looked at again."""

    def due_in(job_id: str) -> int:
        record = subject.store.get_job(job_id)
        assert record is not None
        assert record.next_look_at is not None
        return round((record.next_look_at - clock.now()).total_seconds() + 0.5)

    return due_in


def test_jobs_whose_webhook_never_came_are_found(
    subject: PostgresSubject, sume: Sume, make_poller: Callable[..., Poller], expect: Callable[..., None]
) -> None:
    """Each way to end is the event that a webhook would have told; what has not ended waits."""
    sume.add_job("job_done", artifacts=[b"picture"])
    for outcome in ("nsfw", "failed", "canceled", "queued", "processing", "dreaming"):
        sume.add_job(f"job_{outcome}", outcome=outcome)
    jobs = ("done", "nsfw", "failed", "canceled", "queued", "processing", "dreaming")
    for name in jobs:
        expect(f"job_{name}")
    make_poller().poll(NEVER)
    records = [subject.store.get_job(f"job_{name}") for name in jobs]
    assert [(record.state, record.event) for record in records if record is not None] == [
        ("claimed", "job.completed"),
        ("claimed", "job.failed"),
        ("claimed", "job.failed"),
        ("claimed", "job.canceled"),
        ("expected", None),
        ("expected", None),
        ("expected", None),
    ]
    [artifact] = json.loads(subject.take("job_done").payload)["artifacts"]
    assert artifact["url"].startswith(sume.media_url)
    error = json.loads(subject.take("job_nsfw").payload)["error"]
    assert (error["code"], bool(error["message"])) == ("content_rejected", True)


def test_an_answer_that_names_another_job_is_ignored(
    subject: PostgresSubject,
    sume: Sume,
    make_poller: Callable[..., Poller],
    expect: Callable[..., None],
    due_in: Due,
) -> None:
    """Neither job is claimed by it, and the one asked for is asked again."""
    sume.add_job("job_a", answers_as="job_b")
    expect("job_a")
    make_poller().poll(NEVER)
    assert (subject.state("job_a"), due_in("job_a")) == ("expected", 30)
    assert subject.store.get_job("job_b") is None


def in_a(wait: timedelta) -> str:
    """Return the HTTP date of a moment from now."""
    return format_datetime(clock.now() + wait, usegmt=True)


@pytest.mark.parametrize("status", [404, 503])
def test_any_retry_after_is_bounded(
    sume: Sume, make_poller: Callable[..., Poller], expect: Callable[..., None], due_in: Due, status: int
) -> None:
    """Garbage leaves the usual back-off; a number or a date is kept between POLL_INTERVAL and POLL_MAX."""
    cases = {
        None: 30,
        "soon": 30,
        "-5": 30,
        "0": 30,
        "1_0": 30,
        "120": 120,
        "1000000": 3600,
        "9" * 30: 30,
        in_a(seconds(600)): 600,
        in_a(seconds(-600)): 30,
        in_a(timedelta(days=365)): 3600,
    }
    for number, header in enumerate(cases):
        sume.override(f"job_{number}", Answer.error(status, "no", retry_after=header))
        expect(f"job_{number}")
    with suppress(SumeApiError):  # a 503 is an outage too
        make_poller().poll(NEVER)
    assert [due_in(f"job_{n}") for n in range(len(cases))] == pytest.approx(list(cases.values()), abs=3)


@pytest.mark.parametrize(("header", "due"), [(None, 30), ("0", 30), ("-5", 30), ("120", 120), ("1000000", 3600)])
def test_a_429_pauses_polling_within_the_same_bounds(
    sume: Sume,
    make_poller: Callable[..., Poller],
    expect: Callable[..., None],
    due_in: Due,
    *,
    header: str | None,
    due: int,
) -> None:
    """However long Sume wants it, and never so short that it is asked again at once."""
    sume.override("job_a", Answer.error(429, "slow_down", retry_after=header))
    expect("job_a")
    with capture_logs() as lines, pytest.raises(SumeApiError, match="429"):
        make_poller().poll(NEVER)
    assert [line["seconds"] for line in lines if line["event"] == "poll.paused"] == [due]
    assert due_in("job_a") == pytest.approx(due, abs=2)


@pytest.mark.parametrize("answer", [Answer.html(), Answer.html(200), Answer.truncated(), Answer(200, b"{}")])
def test_nonsense_claims_nothing(
    subject: PostgresSubject,
    sume: Sume,
    make_poller: Callable[..., Poller],
    expect: Callable[..., None],
    answer: Answer,
) -> None:
    """A proxy's page is no answer about the job."""
    sume.override("job_a", answer)
    expect("job_a")
    make_poller().poll(NEVER)
    assert subject.state("job_a") == "expected"


def test_a_wrong_key_pauses_polling(
    sume: Sume, make_poller: Callable[..., Poller], expect: Callable[..., None]
) -> None:
    """Jobs that become due are not asked for with a key that Sume just refused."""
    poller = make_poller(api_key="wrong")
    expect("job_a")
    with pytest.raises(SumeApiError, match="401"):
        poller.poll(NEVER)
    expect("job_b")
    with pytest.raises(SumeApiError, match="401"):
        poller.poll(NEVER)
    assert [request.path for request in sume.api_requests.all()] == ["/v1/jobs/job_a/status"]


def test_only_sumes_origin_is_asked(
    subject: PostgresSubject, sume: Sume, make_poller: Callable[..., Poller], expect: Callable[..., None]
) -> None:
    """The key never goes to another host, and the job is found at the usual address."""
    sume.add_job("job_a", artifacts=[b"picture"])
    sume.add_job("job_b", artifacts=[b"picture"])
    expect("job_a", status_url=f"{sume.media_url}/v1/jobs/job_a/status")
    expect("job_b", status_url=f"{sume.api_url}/v1/jobs/job_b/status?from=us")
    make_poller().poll(NEVER)
    assert (subject.state("job_a"), subject.state("job_b")) == ("claimed", "claimed")
    assert sume.media_requests.all() == []
    [asked] = sume.api_requests.all("/v1/jobs/job_b/status")
    assert asked.query == "from=us"


def test_a_sume_that_is_away_is_found_again(
    subject: PostgresSubject, sume: Sume, make_poller: Callable[..., Poller], expect: Callable[..., None]
) -> None:
    """Connections refused are an outage, and the first answer ends it."""
    sume.add_job("job_a", artifacts=[b"picture"])
    expect("job_a")
    poller = make_poller()
    sume.stop()
    with pytest.raises(SumeApiError):
        poller.poll(NEVER)
    sume.start()
    subject.let_pass(TIMES.interval)
    poller.poll(NEVER)
    assert subject.state("job_a") == "claimed"
