"""A receiver as its own process, and clients that speak to it over real connections."""

import http.client
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.process import Process, python_module
from tests.api.harness import body_of, signed
from tests.conftest import SIGNING_SECRET


class RunningApi:
    """`python -m api` on a port of its own; killed at the end of the `with` block if it still runs."""

    def __init__(self, folder: Path, *arguments: str, **settings: str) -> None:
        self.port = free_port()
        values = {"SUME_COM_WEBHOOK_SIGNING_SECRET": SIGNING_SECRET} | settings
        self.process = Process(
            python_module("api", "--port", str(self.port), *arguments),
            name="api",
            folder=folder,
            env=child_environment(**values),
        )

    def __enter__(self) -> Self:
        self.process.start().wait_for_http(f"http://{LOOPBACK}:{self.port}/livez")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.process.kill()

    def connect(self) -> socket.socket:
        """Return a bare connection."""
        return socket.create_connection((LOOPBACK, self.port), timeout=20)

    def client(self) -> http.client.HTTPConnection:
        """Return a connection that is kept alive."""
        return http.client.HTTPConnection(LOOPBACK, self.port, timeout=20)

    def deliver(self, job_id: str) -> tuple[int, float]:
        """Send one genuine delivery on a connection of its own; returns the status and the seconds it took."""
        client = self.client()
        started = time.monotonic()
        try:
            return post(client, job_id)[0], time.monotonic() - started
        finally:
            client.close()

    def get(self, path: str) -> str:
        """Return what is shown at a path."""
        client = self.client()
        try:
            client.request("GET", path)
            return client.getresponse().read().decode()
        finally:
            client.close()


def post(client: http.client.HTTPConnection, job_id: str) -> tuple[int, Mapping[str, str]]:
    """Send one genuine delivery and return the status and the headers of its answer."""
    body = body_of(job_id)
    client.request("POST", "/webhooks/sume", body, {name.decode(): value.decode() for name, value in signed(body)})
    answer = client.getresponse()
    answer.read()
    return answer.status, dict(answer.headers.items())


def read_all(connection: socket.socket) -> bytes:
    """Return everything until the other side hangs up."""
    received = b""
    while chunk := connection.recv(65_536):
        received += chunk
    return received
