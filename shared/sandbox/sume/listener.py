"""The HTTP listeners of the simulated Sume: plain sockets below, so that an answer can misbehave in any way."""

import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.sume.answers import Answer
from shared.sandbox.sume.requests import Request, RequestLog
from shared.sandbox.wheels import SandboxError

HELD_LOOK_SECONDS = 0.02


class Exchange:
    """One request, and the means to answer it."""

    def __init__(self, handler: "Handler", request: Request, closing: threading.Event) -> None:
        self.request = request
        self.closing = closing
        """Set when the listener stops; whoever waits gives up then."""
        self._handler = handler

    def send(self, answer: Answer) -> None:
        """Send a whole answer, or what there is of it."""
        if answer.held is not None:
            self.wait_for(answer.held)
        length = str(len(answer.body))
        self.start(answer.status, {"Content-Type": answer.content_type, "Content-Length": length, **answer.headers})
        self.write(answer.body[: len(answer.body) - answer.body_missing])
        if answer.body_missing:
            self.hang_up()

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers."""
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        """Send a part of the body."""
        self._handler.wfile.write(data)

    def hang_up(self) -> None:
        """End the connection after this exchange."""
        self._handler.close_connection = True

    def wait_for(self, event: threading.Event) -> None:
        """Return when the event is set or the listener stops."""
        while not (self.closing.is_set() or event.wait(HELD_LOOK_SECONDS)):
            continue


class Listener:
    """One HTTP server with its record of requests; it can be stopped and started again on its port."""

    def __init__(self, respond: Callable[[Exchange], None]) -> None:
        self.port = free_port()
        self.requests = RequestLog()
        self._respond = respond
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The origin it answers at."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Listen."""
        self._server = Server(self.port, self.requests, self._respond)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(HELD_LOOK_SECONDS,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections and end the open ones; raise SandboxError if an answer failed on its own account."""
        if self._server is None or self._thread is None:
            return
        server, self._server = self._server, None
        server.end()
        self._thread.join()
        if server.failures:
            raise SandboxError("the simulated Sume failed to answer") from server.failures[0]


class Server(ThreadingHTTPServer):
    """The listening socket and one thread for each connection, all of which end with it."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, port: int, requests: RequestLog, respond: Callable[[Exchange], None]) -> None:
        self.requests = requests
        self.respond = respond
        self.closing = threading.Event()
        self.failures: list[BaseException] = []
        self._connections: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), Handler)

    def server_bind(self) -> None:
        """Bind without the reverse look-up of our own name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def end(self) -> None:
        """Stop listening, end every connection and wait for its thread."""
        self.closing.set()
        self.shutdown()
        for connection in tuple(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was faster
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection while it is open."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and forget it."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the signature is inherited
        """Keep our own failures for `stop`; clients may leave whenever they like."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            self.failures.append(error)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _exchange(self) -> None:
        server = cast("Server", self.server)
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, path, query, headers, body)
        server.requests.add(request)
        server.respond(Exchange(self, request, server.closing))

    do_GET = do_POST = _exchange  # noqa: N815 - the names are inherited

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
        """Write no access log: the record of requests says more."""
