"""The life of an embedded server: a folder and a port that stay, a process that comes and goes."""

import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Self

from shared.sandbox.ports import free_port
from shared.sandbox.process import Process
from shared.sandbox.wheels import SandboxError

START_WITHIN = timedelta(seconds=30)


class Server(ABC):
    """A real server on 127.0.0.1 with a folder of its own.

    `start` after `stop` or `kill` brings back the same data on the same port. `close` (also the end of a
    `with` block) stops it and deletes the folder. All of them may be called in any state.
    """

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]

    def __init__(self) -> None:
        self.port = free_port()
        self._folder: Path | None = None
        self._process: Process | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients find it."""

    @abstractmethod
    def _prepare(self, folder: Path) -> Process:
        """Fill the new folder and return the process to run."""

    @abstractmethod
    def _ready(self) -> bool:
        """Whether it answers now."""

    @property
    def running(self) -> bool:
        """Whether its process is there, paused or not."""
        return self._process is not None and self._process.running

    @property
    def process(self) -> Process:
        """The server's process."""
        if self._process is None:
            raise SandboxError(f"{self.name} was not started")
        return self._process

    def start(self) -> Self:
        """Start it and return when it answers; a running one is resumed and left as it is.

        A first start that fails leaves nothing behind.
        """
        if self.running:
            self.resume()
            return self
        first = self._process is None
        try:
            if self._process is None:
                self._folder = Path(tempfile.mkdtemp(prefix=f"sume-jobs-{self.name}-"))
                self._process = self._prepare(self._folder)
            self._process.start().wait_for(self._ready, what="ready", within=START_WITHIN)
        except BaseException:
            self.close() if first else self.kill()
            raise
        return self

    def stop(self) -> None:
        """Shut it down in good order."""
        if self.running:
            self.process.terminate(by=self.stop_signal)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        if self.running:
            self.process.kill()

    def pause(self) -> None:
        """Freeze it: it accepts connections and answers nothing."""
        if self.running:
            self.process.pause()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        if self.running:
            self.process.resume()

    def close(self) -> None:
        """Stop it and delete its folder."""
        try:
            self.stop()
        finally:
            self.kill()
            if self._folder is not None:
                shutil.rmtree(self._folder)
            self._folder = self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
