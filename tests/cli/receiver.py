"""A receiver that keeps what it is sent and answers as a test wants."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver(ThreadingHTTPServer):
    """Answers with each of `codes` in turn, the last one again for all that follow."""

    daemon_threads = True

    def __init__(self, *codes: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._codes = list(codes)
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}/webhooks/sume"

    def next_code(self) -> int:
        """Return what to answer now."""
        return self._codes.pop(0) if len(self._codes) > 1 else self._codes[0]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        """Keep the request and answer."""
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append(self.headers)
        code = self.server.next_code()
        error = {"error": {"code": "bad_signature", "message": "Compare the secrets."}}
        body = b"" if code == 204 else json.dumps(error).encode()
        self.send_response(code)
        if code != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def receiving(*codes: int) -> Iterator[Receiver]:
    """Run a receiver while a test needs it."""
    with Receiver(*codes) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
