"""What a message in Redis looks like; fakeredis is enough for shape."""

import json
from typing import Any

import rq
from fakeredis import FakeRedis
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from rq.serializers import JSONSerializer

from shared.claims.records import Message
from shared.config import Settings
from shared.queue import Queue, job_id_of, message_id

JOB_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", fullmatch=True)
SETTINGS = Settings(redis_url=SecretStr("redis://:hunter22@127.0.0.1:1/0"), job_timeout_seconds=60)


def message(job_id: str, *, status: str = "OK", attempt: int = 1) -> Message:
    event = "job.completed" if status == "OK" else "job.failed"
    return Message(job_id=job_id, event=event, status=status, attempt=attempt)


@given(JOB_IDS)
def test_a_job_id_survives_the_way_through_an_rq_id(job_id: str) -> None:
    """Any job_id of the contract gives an id that RQ accepts and that gives the job_id back."""
    encoded = message_id(job_id)
    assert encoded.replace("-", "").replace("_", "").isalnum()
    assert job_id_of(encoded) == job_id


def test_an_ordinary_job_id_stays_readable_and_no_two_messages_share_an_id() -> None:
    first, second = message_id("job_demo"), message_id("job_demo")
    assert first.startswith("job_demo-")
    assert first != second


def test_a_foreign_id_in_the_queue_does_not_break_the_sweep() -> None:
    """Whatever else stands in the list is decoded to something, never to an error."""
    assert job_id_of("__ff-1") == "�"
    assert job_id_of("") == ""


def test_a_message_holds_the_job_id_and_nothing_else() -> None:
    """The job_id is the only argument, and the whole hash holds no field but those of RQ (I2)."""
    redis = FakeRedis()
    queue = Queue(SETTINGS, client=redis)
    queue.enqueue_many([message("job_demo", attempt=3)])

    (found,) = rq.Queue("sume", connection=redis, serializer=JSONSerializer).jobs
    assert found.func_name == "worker.tasks.process"
    assert found.args == ["job_demo"]
    assert found.kwargs == {}
    assert found.description == "job.completed OK job_demo (attempt 3)"
    assert found.meta == {"event": "job.completed", "status": "OK", "attempt": 3}
    assert found.timeout == 90
    assert found.result_ttl == 300
    assert found.failure_ttl == 3600
    assert found.retries_left is None

    raw: Any = redis.hgetall(f"rq:job:{found.id}")
    assert raw.pop(b"data") == b'["worker.tasks.process",null,["job_demo"],{}]'
    assert b"hunter22" not in b"".join(raw.values())


def test_a_message_is_what_rq_itself_would_write() -> None:
    """RQ reads our records as its own: every field but the times is the one its enqueue_many writes."""
    redis = FakeRedis()
    Queue(SETTINGS, client=redis).enqueue_many([message("job_demo", attempt=3)])
    theirs = rq.Queue("sume", connection=redis, serializer=JSONSerializer)
    (ours,) = theirs.jobs
    data = rq.Queue.prepare_data(
        "worker.tasks.process",
        args=("job_demo",),
        timeout=90,
        result_ttl=300,
        failure_ttl=3600,
        description="job.completed OK job_demo (attempt 3)",
        meta={"event": "job.completed", "status": "OK", "attempt": 3},
    )
    theirs.enqueue_many([data])
    (_, other) = theirs.jobs
    varying = {"created_at", "enqueued_at", "data"}
    written = [{key: value for key, value in job.to_dict().items() if key not in varying} for job in (ours, other)]
    assert written[0] == written[1]
    assert json.loads(ours.data) == json.loads(other.data)
    assert ours.created_at is not None
    assert ours.enqueued_at is not None
    assert redis.smembers("rq:queues") == {b"rq:queue:sume"}


def test_failures_go_before_everything_that_waits() -> None:
    """An ERROR event is put at the front, because somebody should be told soon."""
    redis = FakeRedis()
    queue = Queue(SETTINGS, client=redis)
    queue.enqueue_many([message("job_a"), message("job_b")])
    queue.enqueue_many([message("job_c", status="ERROR"), message("job_d")])
    ids = rq.Queue("sume", connection=redis).get_job_ids()
    assert [job_id_of(found) for found in ids] == ["job_c", "job_a", "job_b", "job_d"]


def test_sending_nothing_needs_no_redis() -> None:
    Queue(SETTINGS).enqueue_many([])


def test_the_queue_name_is_a_setting() -> None:
    redis = FakeRedis()
    Queue(SETTINGS.model_copy(update={"queue_name": "media.jobs"}), client=redis).enqueue_many([message("job_a")])
    assert redis.llen("rq:queue:media.jobs") == 1
