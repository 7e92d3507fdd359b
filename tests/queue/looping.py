"""How a test sends from an event loop, and looks at what arrived."""

import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from redis import Redis

from shared.claims.records import Message
from shared.config import Settings
from shared.errors import QueueUnavailableError
from shared.queue import LoopQueue, job_id_of
from shared.sandbox.valkey import Valkey

PASSWORD = "planted-password"
LIMIT = timedelta(seconds=2.5)
KEY = "rq:queue:sume"
OWN_TIMES = (b"created_at", b"enqueued_at")
DEMO = Message(job_id="job_demo", event="job.completed", status="OK", attempt=1)
NEXT = Message(job_id="job_next", event="job.completed", status="OK", attempt=1)

Run: TypeAlias = Callable[[Callable[[], Awaitable[None]]], None]


@asynccontextmanager
async def sending(settings: Settings) -> AsyncIterator[LoopQueue]:
    """Make a queue on the loop and close it."""
    queue = LoopQueue(settings)
    try:
        yield queue
    finally:
        await queue.close()


async def refused(queue: LoopQueue, *messages: Message) -> str:
    """Let a send be refused in time, and return what a log may show of it: the error with all that caused it."""
    before = time.monotonic()
    with pytest.raises(QueueUnavailableError) as caught:
        await queue.send(messages or [DEMO])
    assert time.monotonic() - before < LIMIT.total_seconds()
    assert "Redis: " in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert "job_demo" not in shown
    return shown


def waiting(client: Redis) -> list[str]:
    """Return the job_ids whose messages wait, the next one first."""
    names: Any = client.lrange(KEY, 0, -1)
    return [job_id_of(name.decode()) for name in names]


def with_password(server: Valkey) -> str:
    """Return the server's address with our password in it."""
    return server.url.replace("://", f"://:{PASSWORD}@")


def written(client: Redis) -> tuple[list[str], list[dict[bytes, bytes]], object, int]:
    """Return all that is kept, but for what differs each time: the order, the records, the queues, how many keys."""
    names: Any = client.lrange(KEY, 0, -1)
    records: list[Any] = [client.hgetall(f"rq:job:{name.decode()}") for name in names]
    assert all(record.pop(own) for record in records for own in OWN_TIMES)
    assert [client.ttl(f"rq:job:{name.decode()}") for name in names] == [-1] * len(names)
    size: Any = client.dbsize()
    return waiting(client), records, client.smembers("rq:queues"), size
