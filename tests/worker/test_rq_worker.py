"""What our worker does with messages, and with a Redis that breaks at any moment."""

import time
from collections.abc import Iterator

import pytest
import rq
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from rq.executions import Execution
from rq.job import Job
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker import Worker
from structlog.testing import capture_logs

from shared import clock
from shared.sandbox.valkey import Valkey
from tests.conftest import MakeSettings, started
from tests.worker.conftest import Toys, children
from worker.rq_worker import JobWorker
from worker.stop import StopFlag


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url) as client:
        yield client


def failed(redis: Redis) -> dict[str, str]:
    """Return what RQ keeps about each failed message, by description."""
    queue = rq.Queue("sume", connection=redis, serializer=JSONSerializer)
    jobs = [Job.fetch(found, redis, JSONSerializer) for found in queue.failed_job_registry.get_job_ids()]
    results = [(job.description or "", job.latest_result()) for job in jobs]
    return {description: (result.exc_string or "") if result else "" for description, result in results}


def test_no_function_but_ours_is_imported_or_run(toys: Toys, redis: Redis) -> None:
    """Not as the function, not as a method of a text, not as a callback, not with other arguments."""
    queue = rq.Queue("sume", connection=redis, serializer=JSONSerializer)
    mark = toys.folder / "stolen"
    queue.enqueue("os.mkdir", str(mark), description="foreign")
    queue.enqueue("worker.tasks.process", "quick-1", "quick-2", description="two")
    queue.enqueue("worker.tasks.process", ["quick-1"], description="list")
    queue.enqueue("worker.tasks.process", job_id="quick-1", description="keyword")
    method = queue.create_job("upper", description="method")
    method._instance = "text"  # what a message holds in JSON
    queue.enqueue_job(method)
    called_back = queue.create_job("worker.tasks.process", args=("quick-3",))
    called_back._success_callback_name = "os.getlogin"
    queue.enqueue_job(called_back)
    pickled = rq.Queue("sume", connection=redis).enqueue("os.mkdir", str(mark), description="pickle")

    supervisor = toys.start(1, "--burst")
    assert supervisor.wait() == 0

    assert not mark.exists()
    assert not toys.began("quick-1")
    assert toys.ended("quick-3")
    assert set(failed(redis)) == {"foreign", "two", "list", "keyword", "method", "pickle"}
    assert failed(redis)["foreign"] == "ForeignMessageError: message names 'os.mkdir'; only worker.tasks.process is run"
    assert pickled.id in supervisor.log()
    assert redis.llen("rq:queue:sume:intermediate") == 0


def test_a_message_that_cannot_be_read_is_dropped_and_the_next_is_worked_on(toys: Toys, redis: Redis) -> None:
    redis.rpush("rq:queue:sume", "unreadable", "missing")
    redis.hset("rq:job:unreadable", mapping={"created_at": "no time at all", "data": "x"})
    toys.send("quick-1")
    assert toys.start(1, "--burst").wait() == 0
    assert toys.ended("quick-1")


def test_a_failed_message_leaves_one_line_and_no_traceback(toys: Toys, redis: Redis) -> None:
    """Even sys.exit is only a failure of its message (I2)."""
    toys.send("raising-1", "exiting-2", "quick-3")
    assert toys.start(1, "--burst").wait() == 0
    assert toys.ended("quick-3")
    assert toys.worker_of("quick-3") == toys.worker_of("exiting-2")
    assert failed(redis) == {
        "job.completed OK raising-1 (attempt 1)": "RuntimeError: a secret-free reason",
        "job.completed OK exiting-2 (attempt 1)": "SystemExit: 5",
    }


def test_rq_shows_a_worker_and_what_it_does_and_soon_forgets_a_killed_one(toys: Toys, redis: Redis) -> None:
    """As rq-dashboard and `rq info` read it: nothing in RQ outlives a worker by more than its last heartbeat's term."""
    supervisor = toys.start()
    toys.send("obedient-1")
    supervisor.wait_for(lambda: toys.began("obedient-1"), what="work")
    (worker,) = Worker.all(connection=redis, serializer=JSONSerializer)
    assert worker.get_state() == "busy"
    assert worker.pid == toys.worker_of("obedient-1")
    assert worker.name.split(".")[-2] == str(worker.pid)
    assert worker.current_execution_count == 1
    assert 0 < redis.ttl(worker.key) <= 10

    supervisor.kill()
    redis.delete(worker.key)  # as its TTL does
    registry = StartedJobRegistry("sume", redis, serializer=JSONSerializer)
    registry.cleanup(timestamp=clock.unix_seconds() + 10)
    toys.queue.clean_registries()
    assert toys.queue.workers() == 0
    assert registry.get_job_ids() == []
    assert "AbandonedJobError" in failed(redis)["job.completed OK obedient-1 (attempt 1)"]


def test_a_flushed_redis_is_told_of_the_worker_anew(toys: Toys, redis: Redis) -> None:
    supervisor = toys.start()
    toys.send("obedient-1")
    supervisor.wait_for(lambda: toys.began("obedient-1"), what="work")
    redis.flushall()
    supervisor.wait_for(lambda: toys.queue.workers() == 1, what="being registered again")
    (worker,) = Worker.all(connection=redis, serializer=JSONSerializer)
    assert worker.get_state() == "busy"
    assert [execution.worker_name for execution in worker.get_current_executions()] == [worker.name]
    assert supervisor.terminate() == 0


def test_redis_going_away_for_a_moment_around_a_message_needs_no_person(
    make_settings: MakeSettings, redis_url: str
) -> None:
    """What RQ could not note of it is an outage; anything else it met is an error."""
    worker = JobWorker(make_settings(redis_url=redis_url), work=lambda _job_id: None, stop=StopFlag())
    with capture_logs() as lines:
        for error in (RedisTimeoutError("Timeout reading from socket"), ValueError("bad")):
            worker.handle_exception(Job(connection=worker.connection), type(error), error, None)
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("message.unrecorded", "warning"),
        ("message.failed", "error"),
    ]


@pytest.mark.parametrize("failing", [False, True])
def test_redis_away_at_the_end_of_a_message_is_one_kind_of_error_for_the_loop(
    make_settings: MakeSettings, *, failing: bool
) -> None:
    """Nothing of RQ's own logs or swallows it: the loop says once that Redis is lost, and waits."""
    worker = JobWorker(make_settings(redis_url="redis://127.0.0.1:1/0"), work=lambda _job_id: None, stop=StopFlag())
    job = Job.create(
        "worker.tasks.process", args=("job_demo",), connection=worker.connection, serializer=JSONSerializer
    )
    job.origin, job.started_at, job.ended_at = "sume", clock.now(), clock.now()
    execution = Execution(id="1", job_id=job.id, connection=worker.connection)
    record = worker.handle_job_failure if failing else worker.handle_job_success
    with capture_logs() as lines, pytest.raises(RedisConnectionError):
        record(job, worker.queues[0], worker.queues[0].started_job_registry, execution=execution)
    assert lines == []


def test_redis_may_be_away_at_the_start_and_at_any_moment_later(toys: Toys) -> None:
    """Refused, killed, frozen, flushed; idle or busy: the worker goes on with what comes next."""
    fragile = Valkey()
    started(fragile)
    try:
        toys = toys.on(fragile.url)
        fragile.kill()
        supervisor = toys.start()
        supervisor.wait_for_log("redis.lost")
        fragile.start()
        toys.send("quick-1")
        supervisor.wait_for(lambda: toys.ended("quick-1"), what="work after a late start")

        fragile.pause()
        supervisor.wait_for_log("redis.lost", times=2)
        fragile.resume()
        toys.send("waiting-2")
        supervisor.wait_for(lambda: toys.began("waiting-2"), what="work after a freeze")
        fragile.kill()
        (toys.folder / "waiting-2.go").touch()
        supervisor.wait_for_log("redis.lost", times=3)
        fragile.start()
        toys.send("quick-3")
        supervisor.wait_for(lambda: toys.ended("quick-3"), what="work after a crash in mid-job")
        assert len(children(supervisor)) == 1
        assert "worker.ended" not in supervisor.log()

        fragile.pause()
        before = time.monotonic()
        assert supervisor.terminate() == 0
        assert time.monotonic() - before < 5
    finally:
        fragile.close()
