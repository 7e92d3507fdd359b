"""The load: requests written before the clock starts, sent by one loop that costs a few microseconds each."""

import random
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from shared.sandbox.ports import LOOPBACK

ACCEPTED = b"HTTP/1.1 204"
END = b"\r\n\r\n"
ANSWER_WITHIN = 15.0
ARRIVALS_SEED = 4


class LoadError(Exception):
    """An answer was not the one expected, so nothing can be said about the rate."""


@dataclass(slots=True)
class Load:
    """What came of one load."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    """Seconds from when a request was to be sent to its answer."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the latency that this share of the requests stayed below, in seconds."""
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))]


def closed_loop(port: int, requests: Sequence[bytes], *, connections: int) -> Load:
    """Send every request, each connection its next one as soon as it has its answer."""
    load, waiting = Load(), iter(requests)
    sent_at: dict[int, float] = {}
    with connected(port, connections) as sockets, select.epoll() as poll:
        began = time.perf_counter()
        for number, sock in sockets.items():
            poll.register(number, select.EPOLLIN)
            send_next(sock, waiting, sent_at)
        while len(load.latencies) < len(requests):
            for number, _ in some(poll.poll(ANSWER_WITHIN)):
                receive(sockets[number])
                load.latencies.append(time.perf_counter() - sent_at[number])
                send_next(sockets[number], waiting, sent_at)
        load.seconds = time.perf_counter() - began
    return load


def send_next(sock: socket.socket, waiting: Iterator[bytes], sent_at: dict[int, float]) -> None:
    """Send one more request, if there is one."""
    request = next(waiting, None)
    if request is not None:
        sent_at[sock.fileno()] = time.perf_counter()
        sock.sendall(request)


def open_loop(port: int, requests: Sequence[bytes], *, rate: float, connections: int) -> Load:
    """Send requests at random moments, `rate` a second on average, whether or not others are answered by then.

    A latency counts from the moment at which the request was due: a slow receiver cannot hide behind a sender that
    waits for it. Raises LoadError when every connection is in use.
    """
    load, waiting = Load(), deque(requests)
    due_at: dict[int, float] = {}
    arrivals = random.Random(ARRIVALS_SEED)
    with connected(port, connections) as sockets:
        idle, began = deque(sockets), time.perf_counter()
        due = began
        while waiting or due_at:
            wait = max(0.0, due - time.perf_counter()) if waiting else ANSWER_WITHIN
            # select and not epoll, which waits in whole milliseconds.
            ready, _, _ = select.select(list(due_at), (), (), wait)
            for number in ready:
                receive(sockets[number])
                load.latencies.append(time.perf_counter() - due_at.pop(number))
                idle.append(number)
            while waiting and time.perf_counter() >= due:
                if not idle:
                    raise LoadError(f"{connections} requests wait for an answer")
                number = idle.popleft()
                due_at[number] = due
                sockets[number].sendall(waiting.popleft())
                due += arrivals.expovariate(rate)
        load.seconds = time.perf_counter() - began
    return load


@contextmanager
def connected(port: int, count: int) -> Iterator[dict[int, socket.socket]]:
    """Lend connections by their file number."""
    with ExitStack() as opened:
        sockets = [
            opened.enter_context(socket.create_connection((LOOPBACK, port), timeout=ANSWER_WITHIN))
            for _ in range(count)
        ]
        for sock in sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield {sock.fileno(): sock for sock in sockets}


def receive(sock: socket.socket) -> None:
    """Take one answer, which must be a whole 204."""
    answer = sock.recv(4096)
    while answer.startswith(ACCEPTED) and not answer.endswith(END) and (more := sock.recv(4096)):
        answer += more
    if not (answer.startswith(ACCEPTED) and answer.endswith(END)):
        raise LoadError(f"answered {answer[:300]!r}")


def some(events: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the events; raises LoadError when there are none."""
    if not events:
        raise LoadError(f"no answer within {ANSWER_WITHIN:g} s")
    return events
