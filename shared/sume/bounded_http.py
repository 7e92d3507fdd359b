"""One HTTP exchange that ends in time, whatever the server does."""

import time
from collections.abc import Iterable
from datetime import timedelta
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

MAX_ANSWER_BYTES = 8 * 1024 * 1024


class Deadline:
    """The moment an exchange must be over; a timeout of httpx bounds each read alone, so a drip would never end."""

    def __init__(self, timeout: timedelta) -> None:
        self._end = time.monotonic() + timeout.total_seconds()

    def seconds_left(self) -> float:
        """Return how long the next step may take; raise httpcore.ReadTimeout when the time is up."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose every step ends by the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline decides
        """Read what comes before the deadline."""
        return self._stream.read(max_bytes, self._deadline.seconds_left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the deadline decides
        """Write before the deadline."""
        self._stream.write(buffer, self._deadline.seconds_left())

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the deadline decides
    ) -> httpcore.NetworkStream:
        """Shake hands before the deadline."""
        tls = self._stream.start_tls(ssl_context, server_hostname, self._deadline.seconds_left())
        return DeadlineStream(tls, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Return what the connection tells about itself."""
        return self._stream.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections that share one deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._backend = httpcore.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline decides
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect before the deadline."""
        left = self._deadline.seconds_left()
        stream = self._backend.connect_tcp(host, port, left, local_address, socket_options)
        return DeadlineStream(stream, self._deadline)


class BoundedTransport(httpx.BaseTransport):
    """Gives httpx whole answers: one connection each, no redirect, no proxy, TLS verified, in bounded time and size.

    The bound does not cover name resolution, and each further address of a host that does not answer may take as
    long again. Raises httpx.TransportError with a text of ours, which never holds a URL.
    """

    def __init__(self, *, timeout: timedelta) -> None:
        self._timeout = timeout
        self._tls = httpx.create_ssl_context()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request without a body, and read its answer whole."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        backend = DeadlineBackend(Deadline(self._timeout))
        try:
            with (
                httpcore.ConnectionPool(ssl_context=self._tls, network_backend=backend) as pool,
                pool.stream(request.method, url, headers=request.headers.raw, extensions=request.extensions) as answer,
            ):
                return httpx.Response(answer.status, headers=answer.headers, content=read_bounded(answer))
        except httpcore.TimeoutException as error:
            raise httpx.ReadTimeout("no whole answer in time") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, UnicodeError) as error:  # IDNA refuses some hosts
            raise httpx.NetworkError(f"no usable connection ({type(error).__name__})") from error


def read_bounded(answer: httpcore.Response) -> bytes:
    """Return the body of an answer of sane size; we asked for it unencoded, so nothing can be a bomb."""
    if httpx.Headers(answer.headers).get("Content-Encoding", "identity").lower() != "identity":
        raise httpx.RemoteProtocolError("the answer is encoded, which was not asked for")
    body = bytearray()
    for chunk in answer.iter_stream():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise httpx.RemoteProtocolError("the answer is too large")
    return bytes(body)
