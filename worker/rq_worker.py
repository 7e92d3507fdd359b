"""The RQ worker: takes messages from the queue until it is asked to stop."""

import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import rq
from redis.exceptions import RedisError
from rq.exceptions import DequeueTimeout
from rq.executions import Execution
from rq.serializers import JSONSerializer
from rq.suspension import is_suspended
from rq.worker import SimpleWorker, WorkerStatus
from rq.worker_registration import register

from shared import clock
from shared.config import Settings
from shared.logs import get_logger
from shared.queue import connect
from worker.message import Message, MessageFailedError, describe
from worker.rq_records import record_failure, record_start, record_success
from worker.stop import StopFlag

SOCKET_TIMEOUT_SECONDS = 2
BLOCK_SECONDS = 0.5
"""How long one wait for a message lasts, and so how late an idle worker sees that it should stop."""
HEARTBEAT = timedelta(seconds=3)
HEARTBEAT_TTL = timedelta(seconds=10)
"""A killed worker and what it was doing disappear from RQ this long after its last heartbeat."""
RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Waits between tries while Redis is away; the last one repeats."""


class Ended(Enum):
    """Why a worker's loop ended."""

    STOPPED = auto()
    EMPTY = auto()
    RECYCLED = auto()


class JobWorker(SimpleWorker):
    """One queue, one message at a time, in this process; Redis may vanish at any moment.

    What RQ does around a message is RQ's own, so that rq-dashboard and `rq info` show it as any worker. The loop is
    ours: RQ's ends at the first trouble with Redis. Losing RQ's records of a message costs nothing: the outcome of
    an attempt is in Postgres (I1). Commands over RQ's pub/sub are not listened to; SIGTERM stops a worker.
    """

    job_class = Message

    def __init__(self, settings: Settings, *, work: Callable[[str], None], stop: StopFlag) -> None:
        client = connect(settings, timeout_seconds=SOCKET_TIMEOUT_SECONDS)  # never the enqueuer's
        queue = rq.Queue(settings.queue_name, connection=client, job_class=Message, serializer=JSONSerializer)
        self._work = work
        self._stop = stop
        self._over = threading.Event()
        self._busy_since: float | None = None
        self._suspension_known_until = 0.0
        host, pid = socket.gethostname(), os.getpid()
        super().__init__(
            [queue],
            name=f"{host}.{pid}.{secrets.token_hex(3)}",
            connection=client,
            serializer=JSONSerializer,
            prepare_for_work=False,  # asks Redis for this client's address, and Redis may be away
        )
        self.hostname, self.pid, self.birth_date = host, pid, clock.now()

    @property
    def connection_timeout(self) -> int:
        """RQ raises the client's socket timeout to this; by its own choice a frozen server holds it for minutes."""
        return SOCKET_TIMEOUT_SECONDS

    def get_heartbeat_ttl(self, job: Any, working_time: float = 0.0) -> int:  # noqa: ARG002 - RQ's signature
        """Keep RQ's records of a running message for a few heartbeats, not for the whole time it may take."""
        return int(HEARTBEAT_TTL.total_seconds())

    def busy_for(self) -> timedelta:
        """Return how long the current message has been worked on; zero while idle."""
        since = self._busy_since
        return timedelta(0) if since is None else timedelta(seconds=time.monotonic() - since)

    def run(self, *, burst: bool, max_messages: int) -> Ended:
        """Take messages until asked to stop, in burst mode until none waits, or until `max_messages` were taken."""
        heartbeats = threading.Thread(target=self._keep_announcing, name="rq-heartbeat", daemon=True)
        heartbeats.start()
        taken = failures = 0
        try:
            while not self._stop.is_set():
                if taken >= max_messages:
                    return Ended.RECYCLED
                try:
                    found = self._take(burst=burst)
                    failures = 0
                    if found:
                        taken += 1
                        self.execute_job(*found)
                    elif burst:
                        return Ended.EMPTY
                except RedisError as error:
                    failures += 1
                    self._wait_out(error, failures)
            return Ended.STOPPED
        finally:
            self._over.set()
            heartbeats.join(1)
            if not failures:  # a Redis that is away would only delay the end
                self._say_goodbye()

    def _take(self, *, burst: bool) -> tuple[Any, rq.Queue] | None:
        """Return the next message, or None when none came."""
        if self._is_suspended():
            self._stop.wait(BLOCK_SECONDS)
            return None
        while not self._stop.is_set():
            try:
                found = rq.Queue.dequeue_any(
                    self.queues,
                    None if burst else BLOCK_SECONDS,  # type: ignore[arg-type]  # Redis takes fractions of a second
                    connection=self.connection,
                    job_class=Message,
                    serializer=self.serializer,
                    death_penalty_class=self.death_penalty_class,
                )
            except DequeueTimeout:
                return None
            except RedisError:
                raise
            except Exception as error:  # noqa: BLE001 - an unreadable message may make RQ raise anything
                self._discard(error)
                continue
            if found is None or not self._stop.is_set():
                return found
            self._put_back(found[0])
        return None

    def _is_suspended(self) -> bool:
        """Whether `rq suspend` was called; an answer "no" is good for as long as a wait for a message lasts."""
        if time.monotonic() >= self._suspension_known_until:
            if is_suspended(self.connection):
                return True
            self._suspension_known_until = time.monotonic() + BLOCK_SECONDS
        return False

    def execute_job(self, job: Any, queue: rq.Queue) -> None:
        """Work on one message."""
        job.work = self._work
        self._busy_since = time.monotonic()
        try:
            self.perform_job(job, queue, self.prepare_execution(job))
        finally:
            self._busy_since = None
            self._state = WorkerStatus.IDLE  # written with the records of the end
            self.executions.clear()  # one whose end RQ could not record must not be kept alive by heartbeats

    # RQ tells Redis of a message's beginning in two transactions, and of its end in one and two single commands. One
    # transaction each: what a message costs us beside its work fell from 1.5 to 1.0 ms (CPU 1.1 to 0.8; Redis 0.26 to
    # 0.15).

    def prepare_execution(self, job: Any) -> Execution:
        """Record that the work begins."""
        execution = record_start(self, job, self.queues[0])
        self.executions[execution.id] = execution
        return execution

    def prepare_job_execution(self, job: Any, remove_from_intermediate_queue: bool = False) -> None:  # noqa: FBT001, FBT002 - RQ's signature
        """Do nothing: `prepare_execution` recorded all of it."""

    def handle_execution_ended(self, job: Any, queue: rq.Queue, heartbeat_ttl: int) -> None:  # noqa: ARG002 - RQ's signature
        """Note the time; it is recorded with the success or the failure."""
        job.ended_at = clock.now()

    def handle_exception(self, job: Any, *exc_info: Any) -> None:
        """Log what the work did not log itself; RQ would log a traceback with the arguments."""
        error = exc_info[1]
        if isinstance(error, RedisError):  # what RQ notes about the message, before or after the work; nothing is lost
            get_logger().warning("message.unrecorded", message=job.id, error=type(error).__name__)
        elif not isinstance(error, MessageFailedError):
            get_logger().error("message.failed", message=job.id, error=describe(error))

    def handle_job_failure(
        self,
        job: Any,
        queue: rq.Queue,  # noqa: ARG002 - RQ's signature
        started_job_registry: Any = None,  # noqa: ARG002 - the same
        exc_string: str = "",
        execution: Any = None,
    ) -> None:
        """Record the failure."""
        error = sys.exception()
        record_failure(self, job, execution, line=describe(error) if error else exc_string)

    def handle_job_success(self, job: Any, queue: rq.Queue, started_job_registry: Any, execution: Any) -> None:  # noqa: ARG002 - the same
        """Record the success."""
        record_success(self, job, execution)

    def _put_back(self, job: Any) -> None:
        """Return a message that was taken just as the worker was asked to stop."""
        queue = self.queues[0]
        with self.connection.pipeline() as pipeline:
            pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
            pipeline.lpush(queue.key, job.id)
            pipeline.execute()

    def _discard(self, error: Exception) -> None:
        """Drop a message that RQ cannot read: left where it is, it would be brought back again and again."""
        message = getattr(error, "job_id", None)
        get_logger().error("message.refused", message=message, error=type(error).__name__)
        if message is not None:
            self.connection.lrem(self.queues[0].intermediate_queue_key, 1, message)

    def _wait_out(self, error: RedisError, failures: int) -> None:
        if failures == 1:
            get_logger().warning("redis.lost", error=type(error).__name__)
        self._stop.wait(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1])

    def _keep_announcing(self) -> None:
        while True:
            with suppress(RedisError):
                self.announce()
            if self._over.wait(HEARTBEAT.total_seconds()):
                return

    def announce(self) -> None:
        """Write the whole registration anew, so that Redis may be flushed, and keep what runs alive in RQ's eyes."""
        self.last_heartbeat = clock.now()
        ttl = int(HEARTBEAT_TTL.total_seconds())
        with self.connection.pipeline() as pipeline:
            pipeline.hset(self.key, mapping={**self.serialize(), "state": self.get_state()})
            pipeline.expire(self.key, ttl)
            register(self, pipeline)
            for execution in list(self.executions.values()):
                execution.heartbeat(execution.job.started_job_registry, ttl, pipeline=pipeline)
                execution.save(ttl, pipeline=pipeline)  # whole: after a flush a heartbeat alone makes half a record
                pipeline.sadd(self.executions_key, execution.composite_key)
            pipeline.expire(self.executions_key, ttl)
            pipeline.execute()

    def _say_goodbye(self) -> None:
        with suppress(RedisError):
            self.register_death()  # type: ignore[no-untyped-call]  # RQ's
