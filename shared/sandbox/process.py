"""One process we start and own: a child in a group of its own, its output in a file, never outliving us."""

import http.client
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from shared.sandbox import family
from shared.sandbox.account import Account, run_as
from shared.sandbox.guard import Guard
from shared.sandbox.wheels import SandboxError

POLL_SECONDS = 0.02
LOG_TAIL = 3000
SOON = timedelta(seconds=30)


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command line of `python -m module`, for example `python_module("worker", "--burst")`."""
    return [sys.executable, "-m", module, *arguments]


class Process:
    """A command of ours. Its environment is exactly `env` (see `shared.config.child_environment`).

    It runs in `folder`, so that no `.env` of a developer is read, and writes to `<folder>/<name>.log`,
    appended to at each start. As a context manager it starts, and is killed at the end if it still runs.
    """

    def __init__(  # noqa: PLR0913 - all but the command are keywords
        self,
        command: Sequence[str | Path],
        *,
        name: str,
        folder: Path,
        env: Mapping[str, str],
        account: Account | None = None,
        farewell: signal.Signals = signal.SIGKILL,
        scratch: Path | None = None,
    ) -> None:
        """When ours has died, the process is sent `farewell`, and the folder `scratch` is deleted."""
        self.name = name
        self.log_path = folder / f"{name}.log"
        self._command = [str(part) for part in command]
        self._folder = folder
        self._env = dict(env)
        self._account = account
        self._farewell = farewell
        self._scratch = scratch
        self._child: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    def start(self) -> Self:
        """Start it, or start it again after it ended."""
        if self.running:
            raise SandboxError(f"{self.name} runs already")
        self._guard = Guard(farewell=self._farewell, scratch=self._scratch)
        try:
            with self.log_path.open("ab") as log:
                self._child = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._folder,
                    env=self._env,
                    start_new_session=True,
                    **run_as(self._account),
                )
        except OSError as error:
            self._dismiss_guard()
            raise SandboxError(f"{self.name} cannot be started: {error.strerror}") from error
        self._guard.watch(self._child.pid)
        return self

    @property
    def pid(self) -> int:
        """The process id of the latest start."""
        if self._child is None:
            raise SandboxError(f"{self.name} was not started")
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs or before it was started."""
        if self._child is None:
            return None
        code = self._child.poll()
        if code is not None:
            self._dismiss_guard()
        return code

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self.exit_code is None

    def log(self) -> str:
        """Return all it has written, of every start."""
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    def wait_for(self, happened: Callable[[], bool], *, what: str, within: timedelta = SOON) -> None:
        """Return once `happened()` is true; raise SandboxError when the process ends first or time is up."""
        deadline = time.monotonic() + within.total_seconds()
        while not happened():
            if not self.running:
                raise self._error(f"ended with {self.exit_code} before {what}")
            if time.monotonic() > deadline:
                raise self._error(f"did not come to {what} within {within.total_seconds():g} s")
            time.sleep(POLL_SECONDS)

    def wait_for_log(self, pattern: str, *, times: int = 1, within: timedelta = SOON) -> None:
        """Return when the regular expression stands in the log at least `times` times."""
        self.wait_for(lambda: len(re.findall(pattern, self.log())) >= times, what=f"log {pattern!r}", within=within)

    def wait_for_http(self, url: str, *, within: timedelta = SOON) -> None:
        """Return when GET of the URL answers 200."""
        self.wait_for(lambda: answers_ok(url), what=f"answer at {url}", within=within)

    def wait(self, *, within: timedelta = SOON) -> int:
        """Return the exit code when it has ended; raise SandboxError when it still runs after that time."""
        if self._child is None:
            raise SandboxError(f"{self.name} was not started")
        try:
            code = self._child.wait(within.total_seconds())
        except subprocess.TimeoutExpired:
            raise self._error(f"did not end within {within.total_seconds():g} s") from None
        self._dismiss_guard()
        return code

    def send(self, number: signal.Signals) -> None:
        """Signal this process alone, not its children."""
        if self.running:
            family.send({self.pid}, number)

    def terminate(self, *, by: signal.Signals = signal.SIGTERM, within: timedelta = SOON) -> int:
        """Ask it to stop and return its exit code."""
        self.resume()
        self.send(by)
        return self.wait(within=within)

    def kill(self) -> None:
        """Kill it and all its descendants at one moment (SIGKILL); nothing happens when it has ended."""
        if self.running:
            family.kill(self.pid)
            self.wait()

    def pause(self) -> None:
        """Freeze it and all its descendants (SIGSTOP)."""
        if self.running:
            family.freeze(self.pid)

    def resume(self) -> None:
        """Let it go on after `pause` (SIGCONT)."""
        if self.running:
            family.thaw(self.pid)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None

    def _error(self, problem: str) -> SandboxError:
        return SandboxError(f"{self.name} {problem}\n{self.log()[-LOG_TAIL:]}".rstrip())


def answers_ok(url: str) -> bool:
    """Whether GET of an http URL answers 200 within a second."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=1)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
