"""The process above the workers: starts them, replaces the dead, kills what cannot be stopped."""

import math
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from shared.logs import get_logger
from worker.pulse import Exit

log = get_logger()

TICK_SECONDS = 0.1
OVERSLEPT_SECONDS = 5
FIRST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a supervisor waits for its children."""

    start: timedelta = timedelta(minutes=2)
    """For the first beat of a new child, which imports the user's handler first."""
    silence: timedelta = timedelta(seconds=30)
    """For the next beat; a child silent for longer is frozen or stuck and is killed."""
    stop: timedelta = timedelta(seconds=8.5)
    """For the end of a child that was asked to stop; what still runs then is killed."""
    settled: timedelta = timedelta(seconds=10)
    """A child that died sooner is replaced only after a pause, which doubles each time."""
    longest_pause: timedelta = timedelta(seconds=30)


class Child:
    """One worker process, with the pipe that carries its pulse."""

    def __init__(self, command: Sequence[str], arguments: Sequence[str]) -> None:
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            command = [*command, str(theirs), str(os.getpid()), *arguments]
            # In a group of its own: Ctrl-C reaches the supervisor alone, which then asks it to stop.
            self._process = subprocess.Popen(command, pass_fds=(theirs,), process_group=0)
        finally:
            os.close(theirs)
        self.pid = self._process.pid
        self.started = self.last_beat = time.monotonic()
        self.proven = False
        """Whether it has beaten: its settings are good and its handler could be imported."""

    def listen(self) -> None:
        """Note the beats since the last call."""
        try:
            beats = os.read(self._pipe, 4096)
        except BlockingIOError:
            return
        if beats:
            self.last_beat = time.monotonic()
            if not self.proven:
                self.proven = True
                log.info("worker.started", pid=self.pid)

    def ended(self) -> int | None:
        """Return its exit status, or None while it runs."""
        status = self._process.poll()
        if status is not None and self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        return status

    def stop(self) -> None:
        """Ask it to stop."""
        self._process.terminate()

    def kill(self, why: str) -> None:
        """Kill it; its lease recovers the job (I6)."""
        log.error("worker.killed", pid=self.pid, why=why)
        self._process.kill()
        self.last_beat = math.inf


class Slot:
    """The place of one child after another."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.done = False
        self._pause = timedelta(0)
        self._not_before = 0.0

    def vacant(self) -> bool:
        """Whether a child should be started here now."""
        return self.child is None and not self.done and time.monotonic() >= self._not_before

    def clear(self, *, lived: timedelta, died: bool, patience: Patience) -> None:
        """Make room for the next child: at once, but after a pause when one child after another dies young."""
        self.child = None
        if died and lived < patience.settled:
            first = timedelta(seconds=FIRST_PAUSE_SECONDS)
            self._pause = min(max(first, 2 * self._pause), patience.longest_pause)
        else:
            self._pause = timedelta(0)
        self._not_before = time.monotonic() + self._pause.total_seconds()


class Supervisor:
    """Keeps `processes` children running until SIGTERM or SIGINT, in burst mode until each found the queue empty.

    A child is `command` with the number of its pipe, our process id and `--burst` added; see `worker.child`.
    """

    def __init__(
        self, command: Sequence[str], *, processes: int, burst: bool = False, patience: Patience | None = None
    ) -> None:
        self._command = command
        self._arguments = ["--burst"] if burst else []
        self._burst = burst
        self._patience = patience or Patience()
        self._slots = [Slot() for _ in range(processes)]
        self._stop_requested = False
        self._proven = False
        self._status = 0

    def run(self) -> int:
        """Supervise; return 0 after a requested stop or a finished burst, 2 for unusable settings or storage."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        last_tick = time.monotonic()
        while not self._stop_requested:
            self._reap()
            self._start_missing()
            self._kill_silent()
            if all(slot.done for slot in self._slots):
                return self._status
            time.sleep(TICK_SECONDS)
            if time.monotonic() - last_tick > OVERSLEPT_SECONDS:
                self._forgive()  # the machine was paused, and the children with us
            last_tick = time.monotonic()
        self._stop_children()
        return self._status

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._stop_requested = True

    def _children(self) -> list[Child]:
        return [slot.child for slot in self._slots if slot.child is not None]

    def _start_missing(self) -> None:
        for slot in self._slots:
            if self._stop_requested:
                return
            if not self._proven and self._children():
                return  # one child says first whether the settings are good, so that it is said once
            if slot.vacant():
                slot.child = Child(self._command, self._arguments)

    def _reap(self) -> None:
        for slot in self._slots:
            child = slot.child
            if child is None:
                continue
            child.listen()
            self._proven |= child.proven
            status = child.ended()
            if status is None:
                continue
            if status == Exit.WRONG_STORAGE or (status == Exit.SETTINGS and not self._proven):
                self._status = Exit.SETTINGS  # it has said why, in the one line there should be
                self._stop_requested = True
                slot.child = None
                continue
            expected = status in (Exit.FINISHED, Exit.RECYCLED) or self._stop_requested
            (log.info if expected else log.error)("worker.ended", pid=child.pid, status=status)
            lived = timedelta(seconds=time.monotonic() - child.started)
            slot.clear(lived=lived, died=not expected, patience=self._patience)
            slot.done = self._burst and status == Exit.FINISHED

    def _kill_silent(self) -> None:
        now = time.monotonic()
        for child in self._children():
            limit = self._patience.silence if child.proven else self._patience.start
            if now - child.last_beat > limit.total_seconds():
                child.kill("silent")

    def _forgive(self) -> None:
        for child in self._children():
            child.last_beat = time.monotonic()

    def _stop_children(self) -> None:
        deadline = time.monotonic() + self._patience.stop.total_seconds()
        for child in self._children():
            child.stop()
        killed = False
        while self._children():
            self._reap()
            if not killed and time.monotonic() > deadline:
                killed = True
                for child in self._children():
                    child.kill("still working after being asked to stop")
            time.sleep(TICK_SECONDS)
