"""One connection of a client, cut when a request does not arrive whole in time."""

import asyncio
from datetime import timedelta
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.answers import error_body

HEADERS_LIMIT = 65_536
GRACE = timedelta(seconds=1)
"""The webhook answers 408 itself; the connection is cut this much later."""


class BoundedConnection(HttpToolsProtocol):
    """Bounds what uvicorn does not: the time a request may take to arrive, and the size of its headers."""

    time_limit: ClassVar[timedelta]

    _arriving = True
    """A request is wanted or half here; False from its last byte to the end of its answer."""
    _headers_size = 0
    _headers_complete = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start the clock for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Let uvicorn parse it, within limits."""
        self._headers_size += len(data)
        super().data_received(data)
        if not self._headers_complete and self._headers_size > HEADERS_LIMIT:
            self.transport.close()
        self._watch()

    def _unsupported_upgrade_warning(self) -> None:
        """Refuse a request that asks for another protocol, and hang up: uvicorn would read its body as a request.

        Behind a proxy that passes Upgrade on, that would be a way past its rules.
        """
        body = error_body("upgrade_not_supported", "Send the request without Connection: Upgrade.")
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.cycle.disconnected = True  # what was begun for it is answered to nobody
        self.cycle.message_event.set()
        self.transport.close()

    def on_message_begin(self) -> None:
        """Note the first byte of a request."""
        self._arriving, self._headers_complete, self._headers_size = True, False, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note the end of the headers."""
        self._headers_complete = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note the last byte of a request."""
        self._arriving = False
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if not self._arriving:
            self._forget()
            self._rest_if_answered_early()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.time_limit.total_seconds(), self._cut)

    def _rest_if_answered_early(self) -> None:
        """Start uvicorn's own clock for idle connections: it stopped it when the rest of a refused request came."""
        if self.cycle.response_complete and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()


def bounded_connection(webhook_timeout: timedelta) -> type[asyncio.Protocol]:
    """Return the class of connections for a server whose requests must arrive within `webhook_timeout`."""
    attributes: dict[str, Any] = {"time_limit": webhook_timeout + GRACE}
    return type("BoundedConnection", (BoundedConnection,), attributes)
