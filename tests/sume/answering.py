"""A server on loopback that answers each request with bytes a test wrote."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Script: TypeAlias = Callable[[socket.socket, threading.Event], None]


@dataclass
class Answering:
    """What the server heard, and where it listens."""

    base_url: str
    requests: list[bytes] = field(default_factory=list)
    """Each request's head, as it came."""

    @property
    def targets(self) -> list[str]:
        """Each request's target, byte for byte."""
        return [head.split(b" ")[1].decode() for head in self.requests]


@contextmanager
def answering(*scripts: Script | bytes) -> Iterator[Answering]:
    """Serve one connection a script, the last one again for all that follow; each ends when the test does."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Answering(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def serve() -> None:
            turn = 0
            while not over.is_set():
                connection, _ = listener.accept()
                with connection:
                    head = read_head(connection)
                    if over.is_set() or not head:
                        continue
                    server.requests.append(head)
                    script = scripts[min(turn, len(scripts) - 1)]
                    turn += 1
                    try:
                        connection.sendall(script) if isinstance(script, bytes) else script(connection, over)
                    except OSError:
                        continue  # the client left, as many of these tests want it to

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            over.set()
            socket.create_connection(listener.getsockname()).close()
            thread.join()


def read_head(connection: socket.socket) -> bytes:
    """Return a request up to its empty line."""
    head = b""
    while b"\r\n\r\n" not in head and (chunk := connection.recv(65_536)):
        head += chunk
    return head


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Return a whole HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
