"""What the tests of the downloader share: a partial in memory, a downloader for loopback hosts, a resumable host."""

import hashlib
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from shared.event import Artifact
from shared.storage.storage import never_stop
from tests.worker.scripted_host import Request, ScriptedHost, head
from worker.addresses import HostRules
from worker.download import Downloader, Verified, tls_context

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


TLS = tls_context()
"""Reading the system's certificates takes longer than most tests."""


@dataclass
class MemoryPartial:
    """A partial that keeps what was written, and how much in all."""

    data: bytearray = field(default_factory=bytearray)
    written: int = 0

    def write(self, data: bytes) -> None:
        """Append all of the data."""
        self.data += data
        self.written += len(data)

    def restart(self) -> None:
        """Forget what was written."""
        self.data.clear()

    def discard(self) -> None:
        """Forget it for good."""
        self.data.clear()


def downloader(**overrides: Any) -> Downloader:
    """Return a downloader for hosts on this machine."""
    values: dict[str, Any] = {
        "rules": HostRules.of(("127.0.0.1", "localhost"), allow_insecure=True),
        "stall": timedelta(seconds=5),
        "max_bytes": 2**30,
        "pause": timedelta(milliseconds=1),
        "tls": TLS,
    }
    return Downloader(**(values | overrides))


def fetch(
    host: ScriptedHost,
    into: MemoryPartial | None = None,
    *,
    path: str = "/picture.png",
    check: Callable[[], None] = never_stop,
    settings: dict[str, Any] | None = None,
    **announced: Any,
) -> Verified:
    """Download one artifact from a host."""
    artifact = Artifact(0, host.url + path, **announced)
    return downloader(**(settings or {})).download(artifact, into or MemoryPartial(), check=check)


def sha256(data: bytes) -> str:
    """Return the hex SHA-256."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class ResumableHost:
    """Serves one body, cutting the connection after so many bytes, as long as there are cuts left."""

    body: bytes
    cut_after: int
    cuts: int
    etag: str | None = '"v1"'
    sent: int = 0

    def __call__(self, request: Request, connection: socket.socket) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        start = int(wanted[1]) if wanted and request.headers.get("if-range") == self.etag else 0
        rest, headers = self.body[start:], {"etag": self.etag} if self.etag else {}
        if start:
            place = f"bytes {start}-{len(self.body) - 1}/{len(self.body)}"
            connection.sendall(head(206, content_length=len(rest), content_range=place, **headers))
        else:
            connection.sendall(head(200, content_length=len(rest), **headers))
        if self.cuts > 0:
            self.cuts -= 1
            rest = rest[: self.cut_after]
        self.sent += len(rest)
        connection.sendall(rest)
