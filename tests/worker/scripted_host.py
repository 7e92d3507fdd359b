"""An artifact host that answers byte for byte what a test tells it to."""

import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self, TypeAlias


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    raw: bytes

    @property
    def target(self) -> str:
        """What stands between the method and the version."""
        return self.raw.split(b" ", 2)[1].decode("ascii")

    @property
    def headers(self) -> dict[str, str]:
        """The headers, by lower-case name."""
        lines = self.raw.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if line)
        return {name.lower(): value.strip() for name, _, value in pairs}


TLS_HANDSHAKE = b"\x16"
Answerer: TypeAlias = Callable[[Request, socket.socket], None]


@dataclass
class ScriptedHost:
    """Gives its answers in turn, the last one again and again, each on a connection of its own."""

    answers: Sequence[Answerer]
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    sent: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)

    @property
    def url(self) -> str:
        """The origin."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self.stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:  # a client that hung up is the test's own doing
            connection.settimeout(20)
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection:
                raw = b""
                while not raw.endswith(b"\r\n\r\n") and (data := connection.recv(65536)):
                    raw += data
                    if raw.startswith(TLS_HANDSHAKE):  # to a host that does not speak it
                        break
                if not raw:
                    return
                self.requests.append(Request(raw))
                answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
                answer(self.requests[-1], connection)


def exactly(*pieces: bytes) -> Answerer:
    """Send these bytes and close."""

    def answer(_request: Request, connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return answer


def head(status: int = 200, **headers: str | int) -> bytes:
    """Return the head of an answer; `content_length=3` becomes `content-length: 3`."""
    lines = [f"HTTP/1.1 {status} Reason", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def whole(body: bytes, *, status: int = 200, **headers: str | int) -> Answerer:
    """Answer with a body and its length."""
    return exactly(head(status, content_length=len(body), **headers), body)


def redirect(location: str, *, status: int = 302) -> Answerer:
    """Answer with a redirect."""
    return whole(b"elsewhere", status=status, location=location)


def silent(host_stopped: threading.Event, *pieces: bytes) -> Answerer:
    """Send these bytes and then nothing, the connection staying open."""

    def answer(_request: Request, connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
        host_stopped.wait(20)

    return answer
