"""The choice of loopback ports."""

import random
import socket

LOOPBACK = "127.0.0.1"
PORTS = range(15_000, 30_000)
"""Below the ports that Linux and macOS give to outgoing connections: there, a client that retries while its
server is away can be connected to itself, and the server then finds its port taken."""


def free_port() -> int:
    """Return a loopback port nobody listens on now; a server given it can be restarted on it."""
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as candidate:
            try:
                candidate.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise OSError("no free loopback port")
