"""The drainer: messages go out in batches, and Redis being away costs nobody anything."""

from datetime import timedelta

from structlog.testing import capture_logs

from api.drainer import Drainer
from shared.claims.records import Message
from shared.errors import QueueUnavailableError
from shared.metrics import Gauges, Metrics
from tests.api.fakes import FakeQueue

SOON = timedelta(seconds=10)


def messages(*job_ids: str) -> list[Message]:
    """Return one message a job."""
    return [Message(job_id, "job.completed", "OK", 1) for job_id in job_ids]


def test_what_waits_is_sent_in_one_batch_and_before_the_end() -> None:
    """Messages that come while Redis is slow go out together, and closing sends all of them."""
    target = FakeQueue()
    target.gate.clear()
    drainer = Drainer(target, metrics=Metrics())
    drainer.start()
    drainer.enqueue_many(messages("a"))
    assert target.entered.acquire(timeout=10)
    for name in "bcd":
        drainer.enqueue_many(messages(name))
    target.gate.set()
    drainer.close(within=SOON)
    assert target.batches == [["a"], ["b", "c", "d"]]


def test_messages_wait_out_an_outage() -> None:
    """While Redis is away messages wait in memory, told of in one line, and all are sent when it is back."""
    target, metrics = FakeQueue(), Metrics()
    target.problem = QueueUnavailableError("Redis: refused")
    drainer = Drainer(target, metrics=metrics, retry_after=timedelta(milliseconds=1))
    with capture_logs() as lines:
        drainer.start()
        for number in range(5):
            drainer.enqueue_many(messages(f"job-{number}"))
            assert target.entered.acquire(timeout=10)
        target.problem = None
        drainer.close(within=SOON)
    assert [name for batch in target.batches for name in batch] == [f"job-{number}" for number in range(5)]
    assert [line["event"] for line in lines if line["event"] != "enqueue.resumed"] == ["enqueue.paused"]
    assert b"sume_messages_dropped_total 0.0" in metrics.render(Gauges())


def test_a_redis_that_is_away_is_not_asked_for_each_message() -> None:
    """After a refusal nothing is tried for a while, however many messages come; closing makes one last try."""
    target, metrics = FakeQueue(), Metrics()
    target.problem = QueueUnavailableError("Redis: refused")
    drainer = Drainer(target, metrics=metrics, retry_after=timedelta(hours=1))
    with capture_logs() as lines:
        drainer.start()
        drainer.enqueue_many(messages("first"))
        assert target.entered.acquire(timeout=10)
        for number in range(100):
            drainer.enqueue_many(messages(f"job-{number}"))
        drainer.close(within=SOON)
    assert target.entered.acquire(timeout=10)
    assert not target.entered.acquire(blocking=False)
    dropped = [line["count"] for line in lines if line["event"] == "enqueue.dropped"]
    assert dropped == [101]
    assert b"sume_messages_dropped_total 101.0" in metrics.render(Gauges())


def test_a_frozen_redis_bounds_memory_and_time() -> None:
    """While Redis hangs, offering never waits, what exceeds the capacity is dropped, and closing is bounded."""
    target, metrics = FakeQueue(), Metrics()
    target.gate.clear()
    drainer = Drainer(target, metrics=metrics, capacity=3)
    drainer.start()
    drainer.enqueue_many(messages("a"))
    assert target.entered.acquire(timeout=10)
    with capture_logs() as lines:
        drainer.enqueue_many(messages("b", "c", "d", "e", "f"))
        drainer.close(within=timedelta(seconds=0.05))
    target.gate.set()
    assert b"sume_messages_dropped_total 5.0" in metrics.render(Gauges())
    assert sum(line["count"] for line in lines) == 5
