"""Speaks ASGI to a receiver as a server would, so that a test says exactly which bytes arrive when."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from starlette.types import Message

from api.app import create_app
from api.webhook import PATH
from shared import clock
from shared.config import Settings
from shared.sume.signature import sign
from tests.conftest import SIGNING_SECRET

Headers = list[tuple[bytes, bytes]]
UNREACHABLE_DATABASE = "postgresql://nobody:pw@127.0.0.1:1/none"
UNREACHABLE_REDIS = "redis://127.0.0.1:1/0"


@dataclass
class Answer:
    """What was answered."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error, or "" for an answer without a body."""
        return str(self.json["error"]["code"]) if self.body else ""


def body_of(job_id: str = "job_demo", event: str = "job.completed", **keys: object) -> bytes:
    """Return a delivery's body."""
    return json.dumps({"event": event, "job_id": job_id, **keys}).encode()


def signed(body: bytes, *, secret: str = SIGNING_SECRET, age: float = 0) -> Headers:
    """Return the headers of a genuine delivery made `age` seconds ago."""
    timestamp = str(int(clock.unix_seconds() - age))
    signature = sign(secret.encode(), timestamp=timestamp, body=body)
    return [(b"x-sume-signature", signature.encode()), (b"x-sume-timestamp", timestamp.encode())]


async def call(
    app: FastAPI,
    method: str = "POST",
    path: str = PATH,
    *,
    headers: Headers | None = None,
    chunks: Iterable[bytes] = (b"",),
    complete: bool = True,
) -> Answer:
    """Make one request; its body arrives in chunks and, where not `complete`, never ends.

    The client hangs up when it has its answer.
    """
    answer, answered = Answer(), asyncio.Event()
    waiting = list(chunks)
    path, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "scheme": "http",
        "headers": headers or [], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip

    async def receive() -> Message:
        if not waiting:
            await answered.wait()
            return {"type": "http.disconnect"}
        chunk = waiting.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting) or not complete}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], dict(message["headers"])
        else:
            answer.body += message.get("body", b"")
            answered.set()

    await app(scope, receive, send)
    return answer


async def deliver(app: FastAPI, body: bytes, *, headers: Headers | None = None) -> Answer:
    """Send one delivery, genuine unless it is given other headers."""
    return await call(app, headers=signed(body) if headers is None else headers, chunks=[body])


@asynccontextmanager
async def receiving(settings: Settings) -> AsyncIterator[FastAPI]:
    """Run a receiver from start to shutdown."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield app


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run one async story, bounded in time."""
    asyncio.run(asyncio.wait_for(story(), 60))
