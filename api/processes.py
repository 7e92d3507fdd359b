"""Several receivers on one socket: forks them, restarts one that dies, stops them all."""

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

from shared.logs import get_logger
from shared.orphan import die_with

WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
STOP_WITHIN = timedelta(seconds=9.5)
RESTART_WAIT_SECONDS = 0.5


class Processes:
    """A parent that serves nothing itself and connects to nothing, so that forking it is safe."""

    def __init__(self, serve: Callable[[], int], *, count: int, stop_listening: Callable[[], None]) -> None:
        self._serve = serve
        self._count = count
        self._stop_listening = stop_listening
        self._children: set[int] = set()

    def run(self) -> int:
        """Keep `count` children serving until SIGTERM or SIGINT; returns 0 when all of them ended in order."""
        signal.signal(signal.SIGCHLD, lambda *_: None)  # what is ignored by default could not be waited for
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        for _ in range(self._count):
            self._fork()
        while signal.sigwait(WATCHED) == signal.SIGCHLD:
            self._replace_the_dead()
        return self._stop()

    def _fork(self) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_a_child(parent)
        self._children.add(pid)
        get_logger().info("receiver.started", pid=pid)

    def _be_a_child(self, parent: int) -> NoReturn:
        status = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
            # At once, while still starting too: an orphan that holds the port keeps the next parent from listening.
            if die_with(parent, by=signal.SIGTERM):
                status = self._serve()
        except SystemExit as end:  # uvicorn could not start
            status = end.code if isinstance(end.code, int) else 1
        except Exception:  # noqa: BLE001 - logged, and the parent starts another
            get_logger().exception("receiver.failed")
        finally:
            os._exit(status)  # nothing of the parent's is to be cleaned up twice

    def _replace_the_dead(self) -> None:
        for pid, status in self._reap():
            get_logger().error("receiver.died", pid=pid, status=os.waitstatus_to_exitcode(status))
            time.sleep(RESTART_WAIT_SECONDS)  # one that cannot start at all must not be restarted in a tight loop
            self._fork()

    def _reap(self) -> list[tuple[int, int]]:
        """Return the children that have ended, with their wait status."""
        ended = []
        for pid in list(self._children):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._children.discard(pid)
                ended.append((pid, status))
        return ended

    def _stop(self) -> int:
        """Tell the children to stop; one that does not in time is killed.

        Our own hold on the sockets goes first: clients are then refused, not left waiting for nobody.
        """
        self._stop_listening()
        self._signal_all(signal.SIGTERM)
        deadline = time.monotonic() + STOP_WITHIN.total_seconds()
        in_order = True
        while self._children:
            in_order &= all(status == 0 for _, status in self._reap())
            if time.monotonic() > deadline:
                get_logger().error("receiver.killed", pids=sorted(self._children))
                self._signal_all(signal.SIGKILL)
                deadline = float("inf")
            time.sleep(0.02)
        return 0 if in_order else 1

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in self._children:
            os.kill(pid, number)
