"""An artifact host that costs next to nothing: `python -m tests.bench.artifact_host PORT`.

Every path is a file of 200 KB that holds its own path, so that no two are equal and a mix-up shows in the SHA-256.
"""

import hashlib
import random
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta

from shared.sandbox.ports import LOOPBACK

SIZE = 200_000
MARK = 128
"""Bytes of a file that hold its path, behind the PNG signature."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"
REST = random.Random(0).randbytes(SIZE - MARK - len(SIGNATURE))
HEAD = (
    f"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: {SIZE}\r\n"
    'ETag: "bench"\r\nConnection: close\r\n\r\n'
).encode()
END_OF_REQUEST = b"\r\n\r\n"
PATIENCE = timedelta(seconds=5)
ROOM = 2 * SIZE
"""Bytes the system should take of an answer before its reader is there, so that one slow reader delays no other."""


def start_of(path: str) -> bytes:
    """Return the bytes of a file that differ from those of others."""
    return SIGNATURE + path.encode().ljust(MARK, b"\0")


def sha256_of(path: str) -> str:
    """Return the SHA-256 of the file at a path."""
    return hashlib.sha256(start_of(path) + REST).hexdigest()


def serve(listener: socket.socket) -> None:
    """Answer one request after the other until the process is ended: accept, receive, send, close, no more."""
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE.total_seconds())
            try:
                answer(connection)
            except OSError:
                continue  # a client that went away is the benchmark's to notice


def answer(connection: socket.socket) -> None:
    """Answer one request."""
    request = b""
    while END_OF_REQUEST not in request:
        received = connection.recv(16_384)
        if not received:
            return
        request += received
    path = request.split(b" ", 2)[1].decode()
    connection.sendall(b"".join((HEAD, start_of(path), REST)))


def main(arguments: Sequence[str]) -> int:
    """Listen on a loopback port and serve."""
    with socket.create_server((LOOPBACK, int(arguments[0])), backlog=128) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ROOM)
        serve(listener)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
