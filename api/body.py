"""Reads a request's body within limits of size and time."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive

from shared.errors import DeliveryError

LINGER_SECONDS = 2.0


class ClientGoneError(Exception):
    """The client hung up before its body was complete: nobody is left to answer."""


def too_large(limit: int) -> DeliveryError:
    """Return the refusal of a body over the limit."""
    return DeliveryError("body_too_large", f"The body is larger than {limit} bytes; WEBHOOK_MAX_BYTES raises it.")


@dataclass(slots=True)
class Alarm:
    """Ends a task's wait; one timer and no context manager, as asyncio.timeout took 5 of a delivery's 70 µs."""

    task: asyncio.Task[Any]
    rung: bool = False

    def ring(self) -> None:
        """Cancel what the task waits for."""
        self.rung = True
        self.task.cancel()


async def read_body(receive: Receive, *, limit: int, deadline: float) -> bytes:
    """Return the exact bytes; raises DeliveryError when there are too many or they come too late.

    `deadline` is in the event loop's time.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a body is read in a task")
    alarm = Alarm(task)
    timer = task.get_loop().call_at(deadline, alarm.ring)
    try:
        return await read_to_end(receive, limit=limit)
    except asyncio.CancelledError:
        if not alarm.rung or task.uncancel() > 0:
            raise  # somebody else cancelled the request
        raise DeliveryError(
            "body_too_slow", "The body was not complete within WEBHOOK_TIMEOUT_SECONDS; send it faster."
        ) from None
    finally:
        timer.cancel()


async def read_to_end(receive: Receive, *, limit: int) -> bytes:
    """Return all of the body."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk: bytes = message.get("body", b"")
        if len(body) + len(chunk) > limit:
            raise too_large(limit)
        body = body + chunk if body else chunk
        if not message.get("more_body", False):
            return body


async def discard_rest(receive: Receive) -> None:
    """Read and forget what the client still sends, for a moment.

    Closing with unread bytes makes the kernel reset the connection, and the client would lose the answer.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (message := await receive())["type"] != "http.disconnect" and message.get("more_body", False):
                pass
