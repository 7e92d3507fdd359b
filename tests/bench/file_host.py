"""`python -m tests.bench.file_host FILE`: a host that gives one file for every path, at the speed of `sendfile`."""

import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

MOST_AT_ONCE = 2**30
"""Bytes that one call of sendfile is asked for; it comes back when the socket has them all."""


def main(arguments: list[str] | None = None) -> None:
    """Print the port, then serve until stdin ends, each connection in a thread that sleeps in the kernel."""
    (name,) = sys.argv[1:] if arguments is None else arguments
    with Path(name).open("rb", buffering=0) as file, socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener, file.fileno()), daemon=True).start()
        print(listener.getsockname()[1], flush=True)  # noqa: T201 - read by whoever started this
        sys.stdin.read()


def accept(listener: socket.socket, file: int) -> None:
    """Give every connection its thread."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, file), daemon=True).start()


def serve(connection: socket.socket, file: int) -> None:
    """Answer one request after the other, as long as the client wants; one that hangs up has had enough."""
    size = os.fstat(file).st_size
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nContent-Type: video/mp4\r\n\r\n".encode("ascii")
    with suppress(OSError), connection:
        request = b""
        while data := connection.recv(65536):
            request += data
            if not request.endswith(b"\r\n\r\n"):
                continue
            connection.sendall(head, socket.MSG_MORE)
            sent = 0
            while sent < size:
                sent += os.sendfile(connection.fileno(), file, sent, min(size - sent, MOST_AT_ONCE))
            if b"connection: close" in request.lower():
                return
            request = b""


if __name__ == "__main__":
    main()
