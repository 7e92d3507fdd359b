"""The poller asks about every due job, none waiting for another, and pauses when Sume refuses it as a whole."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from scheduler.look import Looker, PollTimes
from scheduler.poller import GLANCE_SECONDS, LOOKS_AT_ONCE, Poller
from shared.errors import StoreUnavailableError, SumeApiError
from shared.intake import Intake
from shared.sume.api import JobStatus
from tests.claims.postgres_subject import PostgresSubject
from tests.scheduler.fakes import COMPLETED, NEVER, OPEN, FakeApi, FakeQueue, RecordingAlerts, seconds

TIMES = PollTimes(interval=seconds(30), maximum=seconds(3600), give_up=timedelta(days=7))
SOON = 10.0


class Bench:
    """A poller on a real store and a fake API."""

    def __init__(self, subject: PostgresSubject) -> None:
        self.subject = subject
        self.api = FakeApi()
        self.queue = FakeQueue()
        self._pollers: list[Poller] = []

    def poller(self, *, times: PollTimes = TIMES) -> Poller:
        """Return one more scheduler's poller."""
        store = self.subject.store
        looker = Looker(
            store,
            Intake(store, self.queue),
            RecordingAlerts(),
            api=self.api,
            base_url="https://api.open.sume.com",
            times=times,
        )
        poller = Poller(store, looker, times=times)
        self._pollers.append(poller)
        return poller

    def expect(self, *job_ids: str) -> None:
        """Register jobs that are due now."""
        for job_id in job_ids:
            self.subject.store.expect(job_id, status_url=None, due_in=timedelta(0))

    def close(self) -> None:
        """Let the pollers' threads end."""
        for poller in self._pollers:
            poller.close()


@pytest.fixture
def bench(subject: PostgresSubject) -> Iterator[Bench]:
    bench = Bench(subject)
    yield bench
    bench.close()


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_every_due_job_is_asked_for_once(bench: Bench) -> None:
    """More jobs than looks at once, and those not due are left alone."""
    due = [f"job_{n}" for n in range(3 * LOOKS_AT_ONCE)]
    bench.expect(*due)
    bench.subject.store.expect("job_later", status_url=None, due_in=seconds(60))
    bench.api.statuses = {"job_1": COMPLETED, "job_20": COMPLETED}
    poller = bench.poller()
    poller.poll(NEVER)
    poller.poll(NEVER)
    assert sorted(bench.api.asked) == sorted(due)
    assert sorted(bench.queue.sent_ids) == ["job_1", "job_20"]


def test_pollers_at_once_share_the_jobs(bench: Bench) -> None:
    """Each due job is asked for by one of them."""
    due = [f"job_{n:02}" for n in range(40)]
    bench.expect(*due)
    threads = [threading.Thread(target=bench.poller().poll, args=(NEVER,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bench.api.asked) == due


def test_a_slow_answer_delays_no_other_job(bench: Bench) -> None:
    """While one look hangs, jobs that become due later are asked for and claimed."""
    hanging, go_on = threading.Event(), threading.Event()

    def hang() -> JobStatus:
        hanging.set()
        assert go_on.wait(SOON)
        return OPEN

    bench.api.statuses = {"job_slow": hang, "job_quick": COMPLETED, "job_late": COMPLETED}
    bench.expect("job_slow", "job_quick")
    thread = threading.Thread(target=bench.poller().poll, args=(NEVER,))
    thread.start()
    assert hanging.wait(SOON)
    wait_until(lambda: bench.queue.sent_ids == ["job_quick"])
    bench.expect("job_late")
    wait_until(lambda: bench.queue.sent_ids == ["job_quick", "job_late"])
    assert thread.is_alive()
    go_on.set()
    thread.join(SOON)
    assert not thread.is_alive()


def test_a_job_is_taken_only_when_it_is_asked_for(bench: Bench) -> None:
    """Jobs behind slow answers stay due for other schedulers, instead of losing their turn."""
    go_on = threading.Event()

    def hang() -> JobStatus:
        assert go_on.wait(SOON)
        return OPEN

    names = [f"job_{n}" for n in range(LOOKS_AT_ONCE + 2)]
    bench.api.statuses = dict.fromkeys(names, hang)
    bench.expect(*names)
    thread = threading.Thread(target=bench.poller().poll, args=(NEVER,))
    thread.start()
    wait_until(lambda: len(bench.api.asked) == LOOKS_AT_ONCE)
    left = bench.subject.store.due_polls(limit=99, interval=TIMES.interval, maximum=TIMES.maximum)
    assert len(left) == 2
    go_on.set()
    thread.join(SOON)


@pytest.mark.parametrize("status", [401, 429])
def test_a_refused_key_pauses_polling_as_a_whole(bench: Bench, status: int) -> None:
    """No other job is asked for, and none loses its turn, until the pause is over; then the refused one is too."""
    times = PollTimes(interval=seconds(0.2), maximum=seconds(0.2), give_up=TIMES.give_up)
    refusal = SumeApiError("no", http_status=status, retry_after=1_000_000)
    bench.api.statuses = {"job_a": refusal}
    bench.expect("job_a")
    poller = bench.poller(times=times)
    with capture_logs() as lines:
        with pytest.raises(SumeApiError):
            poller.poll(NEVER)
        bench.expect("job_b")
        with pytest.raises(SumeApiError):
            poller.poll(NEVER)
    assert bench.api.asked == ["job_a"]
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["poll.paused"]
    bench.api.statuses = {}

    def asked_again() -> bool:
        try:
            poller.poll(NEVER)
        except SumeApiError:
            return False
        return {"job_a", "job_b"} <= set(bench.api.asked[1:])

    wait_until(asked_again)


def test_an_error_about_one_job_pauses_nothing(bench: Bench) -> None:
    """A 404, an HTML page, another job's id or a 503 with a Retry-After delays that job alone."""
    for status in (404, 200, 503):
        bench.api.statuses[f"job_{status}"] = SumeApiError("no", http_status=status, retry_after=1000)
    bench.expect("job_404", "job_200")
    poller = bench.poller()
    poller.poll(NEVER)
    bench.expect("job_503")
    with pytest.raises(SumeApiError):
        poller.poll(NEVER)
    bench.expect("job_ok")
    poller.poll(NEVER)
    assert sorted(bench.api.asked) == ["job_200", "job_404", "job_503", "job_ok"]


def test_an_api_that_is_away_stays_a_failure_until_it_answers(bench: Bench) -> None:
    """A round in which nobody was due says nothing about it, so the outage is not told of again and again."""
    bench.api.statuses = {
        "job_a": SumeApiError("GET a: away"),
        "job_b": SumeApiError("GET b: away"),
        "job_c": SumeApiError("GET c: 502", http_status=502),
    }
    poller = bench.poller()
    for job_id, problem in (("job_a", "GET a: away"), (None, "GET a: away"), ("job_b", "GET a: away")):
        bench.expect(*([job_id] if job_id else []))
        with pytest.raises(SumeApiError, match=problem):
            poller.poll(NEVER)
    bench.expect("job_c")
    with pytest.raises(SumeApiError, match="502"):
        poller.poll(NEVER)
    bench.expect("job_ok")
    poller.poll(NEVER)


def test_a_claim_that_could_not_be_stored_is_asked_for_again(bench: Bench) -> None:
    """Postgres that goes away after Sume answered loses the answer, not the job."""

    def answer_and_break() -> JobStatus:
        bench.api.statuses["job_a"] = COMPLETED
        raise StoreUnavailableError("away")

    bench.api.statuses["job_a"] = answer_and_break
    bench.expect("job_a")
    poller = bench.poller()
    with pytest.raises(StoreUnavailableError):
        poller.poll(NEVER)
    poller.poll(NEVER)
    assert (bench.queue.sent_ids, bench.subject.state("job_a")) == ([], "expected")
    bench.subject.let_pass(TIMES.interval)
    poller.poll(NEVER)
    assert bench.queue.sent_ids == ["job_a"]


def test_a_stopped_poller_takes_nothing_and_waits_for_what_it_asked(bench: Bench) -> None:
    """A look under way ends in its claim when it can; jobs not taken stay due."""
    stop, asked = threading.Event(), threading.Event()

    def answer_late() -> JobStatus:
        asked.set()
        assert stop.wait(SOON)
        NEVER.wait(2 * GLANCE_SECONDS)  # slower than the poller's own pauses
        return COMPLETED

    bench.api.statuses = {"job_a": answer_late}
    bench.expect("job_a")
    thread = threading.Thread(target=bench.poller().poll, args=(stop,))
    thread.start()
    assert asked.wait(SOON)
    stop.set()
    thread.join(SOON)
    assert bench.queue.sent_ids == ["job_a"]
    bench.expect("job_b")
    bench.poller().poll(stop)
    assert bench.api.asked == ["job_a"]
