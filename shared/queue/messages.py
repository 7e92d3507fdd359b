"""What a message in Redis looks like: RQ's records, holding a job_id and nothing else (I2)."""

import math
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import orjson
import rq
from redis import Redis
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import utcformat

from shared import clock
from shared.claims.records import Message
from shared.config import Settings

FUNCTION = "worker.tasks.process"
"""The one function a message names; a string, because shared never imports worker."""
TIMEOUT_GRACE = timedelta(seconds=30)
"""RQ's own timeout strikes this much after JOB_TIMEOUT_SECONDS, at which the attempt ends itself."""
RESULT_TTL = timedelta(minutes=5)
FAILURE_TTL = timedelta(hours=1)

Command: TypeAlias = tuple[str | bytes, ...]
UNSAFE = re.compile(r"[^A-Za-z0-9_-]|_(?=[^A-Za-z0-9-])|(?<=[^A-Za-z0-9-])_")
ESCAPED = re.compile(r"(?:__[0-9a-f]{2})+")


def message_id(job_id: str) -> str:
    """Return a new RQ id: RQ allows only `[A-Za-z0-9_-]`, so the rest of the job_id is escaped as `__2e`."""
    encoded = UNSAFE.sub(lambda match: "".join(f"__{byte:02x}" for byte in match[0].encode()), job_id)
    return f"{encoded}-{secrets.token_hex(6)}"


def job_id_of(message: str) -> str:
    """Return the job_id inside an RQ id that `message_id` made."""
    encoded = message.rpartition("-")[0]
    return ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("__", "")).decode(errors="replace"), encoded)


class InertJob(Job):
    """A message as read from Redis, of which nothing it names is imported, called or sent.

    RQ would run callbacks and post to webhooks that anybody with access to Redis may have written into a message,
    in the scheduler's clean-up too.
    """

    success_callback = None
    failure_callback = None
    stopped_callback = None

    def perform(self) -> Any:
        """Refuse: only the worker's own kind of message runs anything."""
        raise RuntimeError("a message as read from Redis is never run")

    def send_webhooks(self, status: str | JobStatus, *, exc_string: str | None = None) -> None:
        """Send nothing."""


def fields_of_all(queue: rq.Queue, *, timeout: timedelta) -> list[str]:
    """Return the fields that all of our messages have, as RQ itself writes them, flat as Redis takes them."""
    job = queue.create_job(
        FUNCTION,
        timeout=math.ceil(timeout.total_seconds()),
        result_ttl=int(RESULT_TTL.total_seconds()),
        failure_ttl=int(FAILURE_TTL.total_seconds()),
        status=JobStatus.QUEUED,
    )
    job.origin = queue.name
    written = job.to_dict(include_meta=False) | {"status": JobStatus.QUEUED.value}
    for own in ("created_at", "data", "description"):
        del written[own]
    return [str(part) for field, value in written.items() if value != "" for part in (field, value)]


def fields_of(message: Message, *, now: str) -> tuple[str | bytes, ...]:
    """Return the fields that are a message's own."""
    return (
        "created_at", now,
        "enqueued_at", now,
        "data", orjson.dumps((FUNCTION, None, (message.job_id,), {})),  # RQ reads it compressed or not
        "description", f"{message.event} {message.status} {message.job_id} (attempt {message.attempt})",
        "meta", orjson.dumps({"event": message.event, "status": message.status, "attempt": message.attempt}),
    )  # fmt: skip


def text_of(message: bytes | str) -> str:
    """Return a message's id; one that is no text (a stranger wrote it) becomes one that is nobody's."""
    return message if isinstance(message, str) else message.decode(errors="replace")


class Writing:
    """Puts messages into the commands that write them.

    Written is what RQ's own `enqueue_many` writes (a test compares them) but for fields that are empty, and the
    names of all messages in one push: RQ's takes 65 µs a message, this takes 3.
    """

    def __init__(self, queue: rq.Queue, *, timeout: timedelta) -> None:
        self._key = queue.key
        self._same = fields_of_all(queue, timeout=timeout)

    def commands(self, messages: Sequence[Message]) -> list[Command]:
        """Return the commands; ERROR events go before everything that waits."""
        now = utcformat(clock.now())
        back: list[str] = []
        front: list[str] = []
        commands: list[Command] = [("SADD", rq.Queue.redis_queues_keys, self._key)]
        for message in messages:
            name = message_id(message.job_id)
            (front if message.status == "ERROR" else back).append(name)
            commands.append(("HSET", InertJob.key_for(name), *self._same, *fields_of(message, now=now)))
        if back:
            commands.append(("RPUSH", self._key, *back))
        if front:
            commands.append(("LPUSH", self._key, *front))
        return commands


def rq_queue(settings: Settings, client: Redis) -> rq.Queue:
    """Return RQ's own view of our queue."""
    return rq.Queue(settings.queue_name, connection=client, job_class=InertJob, serializer=JSONSerializer)


def writing_for(settings: Settings, queue: rq.Queue) -> Writing:
    """Return how messages are written into our queue."""
    return Writing(queue, timeout=settings.seconds("job_timeout") + TIMEOUT_GRACE)
