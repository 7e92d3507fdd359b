"""Reads a request's body within limits of size and time."""

import asyncio
from contextlib import suppress

from starlette.types import Receive

from shared.errors import DeliveryError

LINGER_SECONDS = 2.0


class ClientGoneError(Exception):
    """The client hung up before its body was complete: nobody is left to answer."""


def too_large(limit: int) -> DeliveryError:
    """Return the refusal of a body over the limit."""
    return DeliveryError("body_too_large", f"The body is larger than {limit} bytes; WEBHOOK_MAX_BYTES raises it.")


async def read_body(receive: Receive, *, limit: int, deadline: float) -> bytes:
    """Return the exact bytes; raises DeliveryError when there are too many or they come too late.

    `deadline` is in the event loop's time.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout_at(deadline):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > limit:
                    raise too_large(limit)
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError as error:
        raise DeliveryError(
            "body_too_slow", "The body was not complete within WEBHOOK_TIMEOUT_SECONDS; send it faster."
        ) from error


async def discard_rest(receive: Receive) -> None:
    """Read and forget what the client still sends, for a moment.

    Closing with unread bytes makes the kernel reset the connection, and the client would lose the answer.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (message := await receive())["type"] != "http.disconnect" and message.get("more_body", False):
                pass
