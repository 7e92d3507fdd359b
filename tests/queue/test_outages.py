"""How the queue behaves on a real server, healthy and misbehaving."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import rq
from redis import Redis
from rq.registry import FailedJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer

from shared.claims.records import Message
from shared.config import Settings
from shared.errors import QueueUnavailableError
from shared.queue import InertJob, Queue
from shared.sandbox.valkey import Valkey

DEMO = Message(job_id="job_demo", event="job.completed", status="OK", attempt=1)


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    queue = Queue(settings)
    yield queue
    queue.close()


@pytest.fixture
def fragile_queue(fragile_settings: Settings) -> Iterator[Queue]:
    queue = Queue(fragile_settings)
    yield queue
    queue.close()


def strike(*_: object) -> None:
    """Stand for a callback that somebody wrote into a message."""
    raise SystemExit


def refused_within(limit: timedelta, call: Callable[[], object]) -> str:
    before = time.monotonic()
    with pytest.raises(QueueUnavailableError) as caught:
        call()
    assert time.monotonic() - before < limit.total_seconds()
    return str(caught.value)


def test_messages_wait_until_they_are_taken(queue: Queue) -> None:
    assert queue.depth() == 0
    odd = Message(job_id="a.b:c__d_.", event="job.failed", status="ERROR", attempt=2)
    queue.enqueue_many([DEMO, odd, DEMO])
    assert queue.depth() == 3
    assert queue.waiting_ids() == {"job_demo", "a.b:c__d_."}
    assert queue.workers() == 0
    queue.ping()


def test_a_frozen_redis_is_given_up_within_a_second(fragile: Valkey, fragile_queue: Queue) -> None:
    """Frozen before or after the first connection, no call waits, and all is well when it thaws."""
    fragile_queue.ping()
    fragile.pause()
    for call in (lambda: fragile_queue.enqueue_many([DEMO]), fragile_queue.depth, fragile_queue.clean_registries):
        refused_within(timedelta(seconds=1.5), call)
    fragile.resume()
    fragile_queue.enqueue_many([DEMO])
    assert "job_demo" in fragile_queue.waiting_ids()


def test_a_redis_that_comes_late_or_restarts_is_used_at_once(fragile: Valkey, fragile_queue: Queue) -> None:
    """Redis away when the queue is made stops nothing, and a restart costs no message and no error."""
    fragile.kill()
    assert "127.0.0.1" in refused_within(timedelta(seconds=1), fragile_queue.ping)
    fragile.start()
    fragile_queue.enqueue_many([DEMO])
    fragile.stop()
    fragile.start()
    fragile_queue.enqueue_many([DEMO])
    assert fragile_queue.depth() == 2


def test_a_full_or_read_only_redis_is_an_error_of_ours(fragile: Valkey, fragile_queue: Queue) -> None:
    """The text says why and repeats no command."""
    with Redis.from_url(fragile.url) as client:
        client.config_set("maxmemory", 1)
        full = refused_within(timedelta(seconds=1), lambda: fragile_queue.enqueue_many([DEMO]))
        assert "OutOfMemory" in full
        assert "job_demo" not in full
        client.config_set("maxmemory", 0)
        client.replicaof("127.0.0.1", "1")
        read_only = refused_within(timedelta(seconds=1), lambda: fragile_queue.enqueue_many([DEMO]))
        assert "ReadOnly" in read_only
        assert "job_demo" not in read_only
        client.replicaof("NO", "ONE")
    fragile_queue.enqueue_many([DEMO])


def test_what_a_killed_worker_was_doing_is_forgotten_when_its_heartbeat_is_missed(
    queue: Queue, redis: Redis, settings: Settings
) -> None:
    """A started execution whose time ran out becomes a failed message, and nothing it names is run."""
    queue.enqueue_many([DEMO])
    theirs = rq.Queue(settings.queue_name, connection=redis, serializer=JSONSerializer)
    redis.sadd("rq:workers:sume", "rq:worker:gone")
    (message,) = theirs.jobs
    redis.lpop(theirs.key)
    redis.hset(message.key, mapping={"status": "started", "failure_callback_name": f"{__name__}.strike"})
    redis.zadd(theirs.started_job_registry.key, {f"{message.id}:execution": 1})
    assert queue.workers() == 1

    queue.clean_registries()

    assert queue.workers() == 0
    assert StartedJobRegistry(queue=theirs).get_job_ids(cleanup=False) == []
    assert FailedJobRegistry(queue=theirs).get_job_ids() == [message.id]
    failed = InertJob.fetch(message.id, connection=redis, serializer=JSONSerializer)
    assert 0 < redis.ttl(failed.key) <= 3600


def test_a_message_taken_by_a_worker_that_died_at_once_comes_back(queue: Queue, redis: Redis) -> None:
    """Only after it was seen stranded for some time, because a living worker may be about to start it."""
    queue.enqueue_many([DEMO])
    (message,) = rq.Queue("sume", connection=redis).get_job_ids()
    redis.lmove("rq:queue:sume", "rq:queue:sume:intermediate")
    queue.clean_registries()
    queue.clean_registries()
    assert queue.depth() == 0

    seen = f"rq:queue:sume:intermediate:first_seen:{message}"
    assert redis.exists(seen)
    redis.set(seen, 1)
    queue.clean_registries()
    assert queue.waiting_ids() == {"job_demo"}
    assert redis.llen("rq:queue:sume:intermediate") == 0
    assert not redis.exists(seen)
