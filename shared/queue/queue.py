"""The queue as everybody but the receiver uses it."""

from collections.abc import Sequence
from datetime import timedelta

from redis import Redis
from rq.intermediate_queue import IntermediateQueue
from rq.registry import StartedJobRegistry, clean_registries
from rq.worker_registration import clean_worker_registry, get_keys

from shared import clock
from shared.claims.records import Message
from shared.config import Settings
from shared.queue.connection import connect, translated
from shared.queue.messages import job_id_of, rq_queue, text_of, writing_for

STRANDED_AFTER = timedelta(seconds=10)
"""A message taken from the queue but not started for so long belonged to a worker that is gone."""
PAGE = 5_000


class Queue:
    """The queue as its producers and the scheduler use it: one client, made lazily, that never waits long.

    Every method raises QueueUnavailableError within about a second when Redis is away, frozen, full or
    read-only. Losing any message is harmless: the claim stands and the sweep sends another (I1, I3).
    """

    def __init__(self, settings: Settings, *, client: Redis | None = None) -> None:
        self._client = client or connect(settings)
        self._queue = rq_queue(settings, self._client)
        self._writing = writing_for(settings, self._queue)

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Send the messages in one round trip; ERROR events go before everything that waits.

        After an error none is known to be sent, and some may be: harmless, as a duplicate finds no lease.
        """
        if not messages:
            return
        with translated(), self._client.pipeline() as pipeline:
            for command in self._writing.commands(messages):
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call] # untyped there
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
