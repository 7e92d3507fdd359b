"""The only producer of Redis messages."""

import math
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import orjson
import rq
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.retry import Retry
from rq.intermediate_queue import IntermediateQueue
from rq.job import Job, JobStatus
from rq.registry import StartedJobRegistry, clean_registries
from rq.serializers import JSONSerializer
from rq.utils import utcformat
from rq.worker_registration import clean_worker_registry, get_keys

from shared import clock
from shared.claims.records import Message
from shared.config import Settings
from shared.errors import QueueUnavailableError

FUNCTION = "worker.tasks.process"
"""The one function a message names; a string, because shared never imports worker."""
TIMEOUT_GRACE = timedelta(seconds=30)
"""RQ's own timeout strikes this much after JOB_TIMEOUT_SECONDS, at which the attempt ends itself."""
RESULT_TTL = timedelta(minutes=5)
FAILURE_TTL = timedelta(hours=1)
STRANDED_AFTER = timedelta(seconds=10)
"""A message taken from the queue but not started for so long belonged to a worker that is gone."""
SOCKET_TIMEOUT_SECONDS = 0.5
PAGE = 5_000

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
        raise NotImplementedError

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


class Queue:
    """The queue as its producers and the scheduler use it: one client, made lazily, that never waits long.

    Every method raises QueueUnavailableError within about a second when Redis is away, frozen, full or
    read-only. Losing any message is harmless: the claim stands and the sweep sends another (I1, I3).
    """

    def __init__(self, settings: Settings, *, client: Redis | None = None) -> None:
        self._client = client or connect(settings)
        self._queue = rq.Queue(
            settings.queue_name, connection=self._client, job_class=InertJob, serializer=JSONSerializer
        )
        self._same = fields_of_all(self._queue, timeout=settings.seconds("job_timeout") + TIMEOUT_GRACE)

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Send the messages in one round trip; ERROR events go before everything that waits.

        After an error none is known to be sent, and some may be: harmless, as a duplicate finds no lease.

        Written is what RQ's own `enqueue_many` writes (a test compares them) but for fields that are empty, and the
        names of all messages in one push: RQ's takes 65 µs a message, this takes 14.
        """
        if not messages:
            return
        now = utcformat(clock.now())
        back: list[str] = []
        front: list[str] = []
        with translated(), self._client.pipeline() as pipeline:
            pipeline.sadd(rq.Queue.redis_queues_keys, self._queue.key)
            for message in messages:
                name = message_id(message.job_id)
                (front if message.status == "ERROR" else back).append(name)
                pipeline.execute_command("HSET", InertJob.key_for(name), *self._same, *fields_of(message, now=now))  # type: ignore[no-untyped-call] # untyped there
            if back:
                pipeline.rpush(self._queue.key, *back)
            if front:
                pipeline.lpush(self._queue.key, *front)
            pipeline.execute()

    def waiting_ids(self) -> set[str]:
        """Return the job_ids whose message still waits, so that a sweep adds no second one."""
        waiting: set[str] = set()
        with translated():
            start = 0
            while page := self._client.lrange(self._queue.key, start, start + PAGE - 1):
                waiting.update(job_id_of(text_of(message)) for message in page)
                start += len(page)
        return waiting

    def depth(self) -> int:
        """Return how many messages wait."""
        with translated():
            return self._queue.count

    def workers(self) -> int:
        """Return how many workers listen, a killed one included until its heartbeat is missed."""
        with translated():
            return len(get_keys(queue=self._queue))

    def ping(self) -> None:
        """Return when Redis answers."""
        with translated():
            self._client.ping()

    def clean_registries(self) -> None:
        """Forget what killed workers left in RQ; what they took but did not start is queued again."""
        with translated():
            clean_registries(self._queue)
            clean_worker_registry(self._queue)
            self._return_stranded()

    def _return_stranded(self) -> None:
        intermediate: IntermediateQueue = self._queue.intermediate_queue
        taken = [text_of(message) for message in self._client.lrange(intermediate.key, 0, -1)]
        if not taken:
            return
        registry: StartedJobRegistry = self._queue.started_job_registry
        started = set(registry.get_job_ids(cleanup=False))
        for message in taken:
            if message in started or intermediate.set_first_seen(message):
                continue
            first_seen = intermediate.get_first_seen(message)
            if first_seen is None or clock.now() - first_seen < STRANDED_AFTER:
                continue
            # Whoever removes it puts it back, so that two schedulers do not double it.
            if self._client.lrem(intermediate.key, 1, message):
                self._client.lpush(self._queue.key, message)
            self._client.delete(intermediate.get_first_seen_key(message))

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def open_queue(settings: Settings) -> Queue:
    """Return this process's one queue; nothing is connected before the first call."""
    return Queue(settings)


def connect(settings: Settings) -> Redis:
    """Return a client that gives up quickly; one retry, because Redis may have closed an idle connection."""
    if settings.redis_url is None:
        raise ValueError("load the settings with REDIS_URL needed")
    return Redis.from_url(
        settings.redis_url.get_secret_value(),
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 1, (RedisConnectionError,)),
    )


@contextmanager
def translated() -> Iterator[None]:
    """Turn any Redis error into ours, without the command, which redis-py repeats in its texts."""
    try:
        yield
    except (RedisError, OSError) as error:
        text = str(error).rpartition("caused error: ")[2]
        raise QueueUnavailableError(f"Redis: {type(error).__name__}: {text[:200]}") from error
