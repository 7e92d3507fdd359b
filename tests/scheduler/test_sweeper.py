"""The sweep repairs whatever Redis and workers lost, and nothing twice."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis
from structlog.testing import capture_logs

from scheduler.sweeper import Sweeper
from shared.config import Settings
from shared.errors import QueueUnavailableError
from shared.intake import Intake
from shared.queue import Queue, job_id_of
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import LEASE, STALE, event
from tests.scheduler.fakes import NEVER, STOPPED, FakeQueue


def sweeper_of(subject: PostgresSubject, queue: Queue | FakeQueue, *, batch: int = 100) -> Sweeper:
    return Sweeper(subject.store, queue, Intake(subject.store, queue), stale=STALE, batch=batch)


def redis_of(settings: Settings) -> Redis:
    assert settings.redis_url is not None
    return Redis.from_url(settings.redis_url.get_secret_value())


def sent_by(settings: Settings) -> list[str]:
    """The job_ids in the real queue, in order."""
    with redis_of(settings) as client:
        messages: list[bytes] = client.lrange("rq:queue:sume", 0, -1)
    return [job_id_of(message.decode()) for message in messages]


def test_a_flushed_redis_is_filled_again(subject: PostgresSubject, queue: Queue, settings: Settings) -> None:
    """Every job whose message is gone gets a new one, ERROR before all others."""
    intake = Intake(subject.store, queue)
    intake.claim([event("job_0"), event("job_1"), event("job_2"), event("job_bad", "job.failed")])
    assert len(sent_by(settings)) == 4
    with redis_of(settings) as client:
        client.flushall()
    subject.let_pass(STALE)
    sweeper_of(subject, queue).sweep(NEVER)
    sent = sent_by(settings)
    assert sorted(sent) == ["job_0", "job_1", "job_2", "job_bad"]
    assert sent[0] == "job_bad"


def test_a_claim_whose_message_still_waits_gets_no_second_one(subject: PostgresSubject, queue: Queue) -> None:
    """A deep queue is not made deeper, however long it stays so."""
    subject.deliver("job_a")
    subject.deliver("job.b:c")
    sweeper = sweeper_of(subject, queue)
    for _ in range(3):
        subject.let_pass(STALE)
        sweeper.sweep(NEVER)
    assert queue.depth() == 2
    assert queue.waiting_ids() == {"job_a", "job.b:c"}


def test_nothing_young_is_sent(subject: PostgresSubject) -> None:
    """A claim whose message was just sent is left alone; a sweep of nothing is silent and reads no deep queue."""
    subject.deliver("job_a")
    queue = FakeQueue()
    with capture_logs() as lines:
        sweeper_of(subject, queue).sweep(NEVER)
    assert (queue.sent, queue.readings, lines) == ([], 0, [])


def test_a_lost_lease_is_queued_in_the_same_sweep(subject: PostgresSubject) -> None:
    """A killed worker costs one lease and one sweep, and the next sweep adds nothing."""
    subject.deliver("job_a")
    subject.take("job_a")
    subject.let_pass(LEASE)
    queue = FakeQueue()
    sweeper = sweeper_of(subject, queue)
    with capture_logs() as lines:
        sweeper.sweep(NEVER)
        sweeper.sweep(NEVER)
    assert [(message.job_id, message.attempt) for message in queue.sent] == [("job_a", 2)]
    assert [line["event"] for line in lines] == ["lease.lost", "sweep.done"]
    assert lines[1]["leases_lost"] == lines[1]["enqueued"] == 1


def test_all_is_swept_however_much_there_is(subject: PostgresSubject) -> None:
    """Batches follow one another until none is left, for leases and claims alike."""
    for n in range(10):
        subject.deliver(f"job_{n}")
    for n in range(6):
        subject.take(f"job_{n}")
    subject.let_pass(STALE)
    queue = FakeQueue()
    sweeper_of(subject, queue, batch=4).sweep(NEVER)
    assert queue.readings == 1
    assert sorted(queue.sent_ids) == [f"job_{n}" for n in range(10)]


def test_three_schedulers_at_once_send_each_claim_once(
    subject: PostgresSubject, queue: Queue, settings: Settings
) -> None:
    """Any number may sweep at the same moment."""
    for n in range(60):
        subject.deliver(f"job_{n:02}")
    for n in range(20):
        subject.take(f"job_{n:02}")
    subject.let_pass(STALE)
    together = threading.Barrier(3)

    def sweep(_number: int) -> None:
        # A view of its own of what waits, as of before the others sent anything.
        theirs = FakeQueue()
        together.wait(10)
        Sweeper(subject.store, theirs, Intake(subject.store, queue), stale=STALE, batch=7).sweep(NEVER)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(sweep, range(3)))
    sweeper_of(subject, queue).sweep(NEVER)
    assert sorted(sent_by(settings)) == [f"job_{n:02}" for n in range(60)]


def test_while_redis_is_away_leases_are_lost_and_no_claim_is_used_up(subject: PostgresSubject) -> None:
    """The first sweep after its return sends everything, without waiting for the claims to be stale again."""
    subject.deliver("job_a")
    subject.deliver("job_b")
    subject.take("job_b")
    subject.let_pass(STALE)
    queue = FakeQueue()
    queue.there = False
    sweeper = sweeper_of(subject, queue)
    for _ in range(2):
        with pytest.raises(QueueUnavailableError):
            sweeper.sweep(NEVER)
    assert subject.state("job_b") == "claimed"
    queue.there = True
    sweeper_of(subject, queue).sweep(NEVER)  # another scheduler's, which remembers nothing of it
    assert sorted(queue.sent_ids) == ["job_a", "job_b"]


@pytest.mark.parametrize("fault", ["readable", "writable"])
def test_a_batch_taken_when_redis_goes_away_is_sent_by_the_next_sweep(subject: PostgresSubject, fault: str) -> None:
    """Redis that goes away in mid-sweep, or takes no writes, delays a message by one sweep, not by two minutes."""
    subject.deliver("job_a")
    subject.let_pass(STALE)
    queue = FakeQueue()
    setattr(queue, fault, False)
    sweeper = sweeper_of(subject, queue)
    for _ in range(2):
        with pytest.raises(QueueUnavailableError):
            sweeper.sweep(NEVER)
    setattr(queue, fault, True)
    sweeper.sweep(NEVER)
    sweeper.sweep(NEVER)
    assert queue.sent_ids == ["job_a"]


def test_a_stopped_scheduler_takes_nothing_more(subject: PostgresSubject) -> None:
    """What it would not get to send stays due for another one."""
    subject.deliver("job_a")
    subject.let_pass(STALE)
    queue = FakeQueue()
    sweeper_of(subject, queue).sweep(STOPPED)
    assert queue.sent == []
    sweeper_of(subject, queue).sweep(NEVER)
    assert queue.sent_ids == ["job_a"]
