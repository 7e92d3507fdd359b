"""One connection of a client: cut when a request does not arrive whole in time, short-cut when it does at once."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from api.answers import ACCEPTED, error_body
from api.webhook import PATH, Webhook

HEADERS_LIMIT = 65_536
PIPELINE_LIMIT = 100
"""Requests of one connection that may wait for the answer before theirs; uvicorn would queue whatever is sent."""
GRACE = timedelta(seconds=1)
"""The webhook answers 408 itself; the connection is cut this much later."""


class BoundedConnection(HttpToolsProtocol):
    """Bounds what uvicorn does not: the time a request may take to arrive, and the size of its headers.

    A delivery that arrives in one piece, as nearly all do, is handed to the webhook without a task.
    """

    time_limit: ClassVar[timedelta]
    webhook: ClassVar[Webhook]

    _arriving = True
    """A request is wanted or half here; False from its last byte to the end of its answer."""
    _headers_size = 0
    _headers_complete = False
    _deadline: asyncio.TimerHandle | None = None
    _parsing = False
    _current: RequestResponseCycle | None = None
    """The request that is answered now; those after it wait."""
    _held: tuple[RequestResponseCycle, Any] | None = None
    """A request whose headers are here, until the end of what was read with them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start the clock for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Let uvicorn parse it, within limits."""
        self._headers_size += len(data)
        self._parsing = True
        super().data_received(data)
        self._parsing = False
        self._start_held()
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
        self.transport.close()
        self._answer_nobody()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and hang up."""
        super().send_400_response(msg)
        self._answer_nobody()

    def _answer_nobody(self) -> None:
        """Let requests that are under way end without an answer; uvicorn would forget all but the last."""
        for cycle in (self._current, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def on_message_begin(self) -> None:
        """Note the first byte of a request; one too many ends the connection."""
        if len(self.pipeline) >= PIPELINE_LIMIT:
            raise ValueError("too many requests were sent without waiting for an answer")  # answered 400 by uvicorn
        self._arriving, self._headers_complete, self._headers_size = True, False, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note the end of the headers."""
        self._headers_complete = True
        super().on_headers_complete()
        self.headers = []  # trailers, which are no headers: RFC 9110, section 6.5

    def on_message_complete(self) -> None:
        """Note the last byte of a request."""
        self._arriving = False
        super().on_message_complete()
        self._start_held()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request; one for the webhook that may still be arriving is held until what was read is parsed."""
        self._current = cycle
        if self._parsing and cycle.more_body and cycle.scope["path"] == PATH:
            self._held = cycle, app
        elif not self._take_whole(cycle):
            self.start_task(cycle, app)

    def start_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Let an ASGI app answer a request in a task, as uvicorn does."""
        super()._start_asgi_task(cycle, app)

    def _start_held(self) -> None:
        if self._held is not None:
            (cycle, app), self._held = self._held, None
            if not self._take_whole(cycle):
                self.start_task(cycle, app)

    def _take_whole(self, cycle: RequestResponseCycle) -> bool:
        """Hand a whole delivery to the webhook, when nothing about its connection is out of the ordinary."""
        if cycle.more_body or cycle.scope["path"] != PATH or cycle.waiting_for_100_continue or cycle.disconnected:
            return False
        if self.flow.write_paused:  # the client does not read: its next answer must wait
            return False
        return self.webhook.take_whole(cycle.scope, bytes(cycle.body), WholeRequest(self, cycle))  # type: ignore[arg-type] # uvicorn's own type of the same

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._forget()
        super().connection_lost(exc)
        self._answer_nobody()

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


def nothing() -> None:
    """Do nothing when an answer is complete."""


@dataclass(frozen=True, slots=True)
class WholeRequest:
    """Answers one request that is here with all its bytes."""

    connection: BoundedConnection
    cycle: RequestResponseCycle

    def accept(self) -> None:
        """Answer 204, as the cycle would."""
        cycle = self.cycle
        if cycle.disconnected or cycle.transport.is_closing():
            cycle.on_response = nothing
            return
        parts = [STATUS_LINE[ACCEPTED]]
        for name, value in cycle.default_headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
        cycle.transport.write(b"".join(parts))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            cycle.transport.close()
        # As uvicorn does: a connection that its last request refers to is left to the garbage collector.
        on_response, cycle.on_response = cycle.on_response, nothing
        on_response()

    def run(self, app: ASGIApp) -> None:
        """Let an ASGI app answer."""
        if self.cycle.transport.is_closing():
            self.cycle.on_response = nothing
            return
        self.connection.start_task(self.cycle, app)


def bounded_connection(webhook_timeout: timedelta, *, webhook: Webhook) -> type[asyncio.Protocol]:
    """Return the class of connections for a server whose requests must arrive within `webhook_timeout`."""
    attributes: dict[str, Any] = {"time_limit": webhook_timeout + GRACE, "webhook": webhook}
    return type("BoundedConnection", (BoundedConnection,), attributes)
