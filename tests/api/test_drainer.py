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


def test_an_outage_is_reported_once_and_dropped() -> None:
    """While Redis is away messages are dropped, counted, and told of in one line, not in one a message."""
    target, metrics = FakeQueue(), Metrics()
    target.problem = QueueUnavailableError("Redis: refused")
    drainer = Drainer(target, metrics=metrics)
    with capture_logs() as lines:
        drainer.start()
        for number in range(5):
            drainer.enqueue_many(messages(f"job-{number}"))
            assert target.entered.acquire(timeout=10)
        drainer.close(within=SOON)
    dropped = [line for line in lines if line["event"] == "enqueue.dropped"]
    assert len(dropped) == 2  # the first drop at once, the rest at the end
    assert sum(line["count"] for line in dropped) == 5
    assert b"sume_messages_dropped_total 5.0" in metrics.render(Gauges())


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
