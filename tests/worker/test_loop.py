"""The worker's loop, in this process on a real Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from shared.claims.records import Message
from shared.config import Settings
from shared.queue import Queue
from shared.sandbox.valkey import Valkey
from tests.conftest import MakeSettings, started
from worker.message import MessageFailedError
from worker.rq_worker import Ended, JobWorker
from worker.stop import StopFlag
from worker.tasks import process


class ScriptedStop(StopFlag):
    """A wish to stop that comes after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def is_set(self) -> bool:
        """Count the looks."""
        self._looks -= 1
        return self._looks < 0


@pytest.fixture
def settings(make_settings: MakeSettings, redis_url: str) -> Settings:
    return make_settings(redis_url=redis_url)


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    queue = Queue(settings)
    yield queue
    queue.close()


def send(queue: Queue, *job_ids: str) -> None:
    queue.enqueue_many([Message(job_id, "job.completed", "OK", 1) for job_id in job_ids])


def test_messages_are_worked_on_in_order_and_a_worker_leaves_after_its_share(settings: Settings, queue: Queue) -> None:
    send(queue, "job_a", "job_b", "job_c")
    done: list[str] = []
    worker = JobWorker(settings, work=done.append, stop=StopFlag())
    assert worker.run(burst=False, max_messages=2) is Ended.RECYCLED
    assert done == ["job_a", "job_b"]
    assert JobWorker(settings, work=done.append, stop=StopFlag()).run(burst=True, max_messages=2) is Ended.EMPTY
    assert done == ["job_a", "job_b", "job_c"]
    assert queue.workers() == 0


def test_a_message_taken_just_as_the_worker_is_asked_to_stop_goes_back(
    settings: Settings, queue: Queue, redis_url: str
) -> None:
    """To the front, where it was."""
    send(queue, "job_a", "job_b")
    worker = JobWorker(settings, work=pytest.fail, stop=ScriptedStop(looks=2))
    assert worker.run(burst=False, max_messages=9) is Ended.STOPPED
    with Redis.from_url(redis_url) as redis:
        assert redis.llen("rq:queue:sume:intermediate") == 0
    done: list[str] = []
    JobWorker(settings, work=done.append, stop=StopFlag()).run(burst=True, max_messages=9)
    assert done == ["job_a", "job_b"]


def test_suspended_workers_take_nothing(settings: Settings, queue: Queue, redis_url: str) -> None:
    """As `rq suspend` asks."""
    send(queue, "job_a")
    with Redis.from_url(redis_url) as redis:
        redis.set("rq:suspended", 1)
    worker = JobWorker(settings, work=pytest.fail, stop=StopFlag())
    assert worker.run(burst=True, max_messages=9) is Ended.EMPTY
    assert queue.waiting_ids() == {"job_a"}


def test_a_message_says_its_real_end_whatever_the_ttl_of_its_records(
    settings: Settings, queue: Queue, redis_url: str
) -> None:
    """Everything RQ keeps about a finished or failed message expires."""

    def work(job_id: str) -> None:
        if job_id == "job_b":
            raise MessageFailedError("download_failed: no")

    send(queue, "job_a", "job_b")
    JobWorker(settings, work=work, stop=StopFlag()).run(burst=True, max_messages=9)
    with Redis.from_url(redis_url) as redis:
        hashes = {key: redis.hget(key, "status") for key in redis.scan_iter("rq:job:*")}
        assert sorted(map(str, hashes.values())) == ["b'failed'", "b'finished'"]
        lasting = {key for key in redis.scan_iter("rq:*") if redis.ttl(key) == -1}
        assert lasting <= {b"rq:queues", b"rq:finished:sume", b"rq:failed:sume"}


def test_a_message_whose_end_rq_could_not_record_is_not_kept_alive(make_settings: MakeSettings) -> None:
    """Heartbeats for it would let RQ believe for ever that it is being worked on."""
    fragile, stop = Valkey(), StopFlag()
    started(fragile)

    def work(_job_id: str) -> None:
        fragile.kill()
        stop.set()

    try:
        settings = make_settings(redis_url=fragile.url)
        queue = Queue(settings)
        send(queue, "job_a")
        worker = JobWorker(settings, work=work, stop=stop)
        assert worker.run(burst=False, max_messages=9) is Ended.STOPPED
        assert worker.executions == {}
        assert worker.get_state() == "idle"
        queue.close()
    finally:
        fragile.close()


def test_plain_rq_is_told_of_unusable_settings_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MessageFailedError, match=r"^settings: DATABASE_URL: is not set"):
        process("job_demo")
