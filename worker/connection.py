"""One connection to an artifact host, to an address that was checked, whose every wait can be interrupted."""

import errno
import io
import os
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from worker.patience import Patience
from worker.target import Target

BUFFER = 64 * 1024
UNDER_WAY = (0, errno.EINPROGRESS)
Result = TypeVar("Result")


class Connection(io.RawIOBase):
    """A connected socket in non-blocking mode: bytes that are there cost one system call, and no wait is blind.

    It has the one method (`makefile`) that http.client's response reader asks of a socket.
    """

    def __init__(self, sock: socket.socket, *, patience: Patience) -> None:
        self._sock = sock
        self._patience = patience

    def readable(self) -> bool:
        """Say to the buffered reader that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has come, waiting while nothing has."""
        self._patience.check()
        return self._persist(lambda: self._sock.recv_into(buffer))

    def send(self, data: bytes) -> None:
        """Send all of the data."""
        left = memoryview(data)
        while left:
            left = left[self._persist(lambda: self._sock.send(left)) :]  # noqa: B023 - called before `left` changes

    def secure(self, context: ssl.SSLContext, *, host: str) -> None:
        """Speak TLS from now on with the host that this name and certificate belong to."""
        # An end that TLS did not announce is a cut, not the end of the file.
        self._sock = secured = context.wrap_socket(
            self._sock, server_hostname=host, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
        self._persist(secured.do_handshake)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the reader that owns this connection: closing it closes the socket."""
        return io.BufferedReader(self, BUFFER)

    def close(self) -> None:
        """Close the socket too."""
        self._sock.close()
        super().close()

    def _persist(self, step: Callable[[], Result]) -> Result:
        while True:
            try:
                return step()
            except (BlockingIOError, ssl.SSLWantReadError):
                wait_for(self._sock, select.POLLIN, patience=self._patience)
            except ssl.SSLWantWriteError:
                wait_for(self._sock, select.POLLOUT, patience=self._patience)


def connect(target: Target, addresses: Sequence[str], *, tls: ssl.SSLContext, patience: Patience) -> Connection:
    """Connect to the first of the addresses that answers, each given its share of the patience.

    The name is not resolved again: what was checked is what is connected.
    """
    failure = OSError("has no address")
    for address in addresses:
        try:
            sock = reach(address, target.port, patience=patience.share(len(addresses)))
        except OSError as error:
            failure = error
            continue
        connection = Connection(sock, patience=patience)
        try:
            if target.scheme == "https":
                connection.secure(tls, host=target.host)
        except BaseException:
            connection.close()
            raise
        return connection
    raise failure


def reach(address: str, port: int, *, patience: Patience) -> socket.socket:
    """Connect a socket to an address."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(0)
        refuse_failure(sock.connect_ex((address, port)))
        wait_for(sock, select.POLLOUT, patience=patience)
        refuse_failure(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    except BaseException:
        sock.close()
        raise
    return sock


def refuse_failure(code: int) -> None:
    """Raise what the system reports as a number, unless it is success or a connection under way."""
    if code not in UNDER_WAY:
        raise OSError(code, os.strerror(code))


def wait_for(sock: socket.socket, event: int, *, patience: Patience) -> None:
    """Wait until the socket can go on; TimeoutError when it cannot for too long."""
    poll = select.poll()
    poll.register(sock, event)
    for wait in patience.slices():
        if poll.poll(wait * 1000):
            return
