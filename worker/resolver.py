"""The addresses of a host, asked for once a hop and never waited for too long."""

import queue
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from worker.addresses import address_of
from worker.patience import Patience

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host; raises OSError when there are none."""


def system_resolver(host: str, port: int) -> list[str]:
    """Ask the operating system."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def resolve(host: str, port: int, *, resolver: Resolver, patience: Patience) -> Sequence[str]:
    """Resolve in a thread of its own, because getaddrinfo knows no time limit and cannot be interrupted.

    A thread left behind ends with the system's own limit and keeps no process alive. An address needs neither.
    """
    if (literal := address_of(host)) is not None:
        return (literal,)
    answers: queue.SimpleQueue[Sequence[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolver(host, port))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=ask, name=f"resolve {host}", daemon=True).start()
    for wait in patience.slices():
        try:
            answer = answers.get(timeout=wait)
        except queue.Empty:
            continue
        if isinstance(answer, OSError):
            raise answer
        return answer
    raise TimeoutError  # not reached: slices() raises it
