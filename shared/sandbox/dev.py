"""The system that `sume-jobs dev` keeps up, and how to use it."""

import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.sandbox.dev_folder import dev_folder, write_env
from shared.sandbox.picture import png
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.system import System
from shared.sandbox.wheels import SandboxError

API_PORT = 8000
DASHBOARD_PORT = 9181
SETTINGS = {"LEASE_SECONDS": "10", "SWEEP_INTERVAL_SECONDS": "2", "POLL_INTERVAL_SECONDS": "5"}
"""Impatient, since somebody is watching; the others are as in production."""


@dataclass(frozen=True, slots=True)
class Dev:
    """A running system with its dashboard, and the file that tells a shell of it."""

    system: System
    dashboard_url: str
    env_file: Path

    def places(self) -> list[tuple[str, str]]:
        """Return every URL and credential, for a person to use."""
        environment = self.system.environment
        token = environment["OPS_TOKEN"]
        return [
            ("webhook", f"{self.system.api_url}/webhooks/sume"),
            ("signing secret", environment["SUME_COM_WEBHOOK_SIGNING_SECRET"]),
            ("operator API", f"{self.system.api_url}/v1/jobs"),
            ("  bearer token", token),
            ("OpenAPI", f"{self.system.api_url}/openapi.json"),
            ("metrics", f"{self.system.api_url}/metrics"),
            ("rq-dashboard", self.dashboard_url),
            ("  user, password", f"ops, {token}"),
            ("simulated Sume", self.system.sume.api_url),
            ("  API key", self.system.sume.api_key),
            ("DATABASE_URL", self.system.postgres.url),
            ("REDIS_URL", self.system.valkey.url),
            ("files", str(self.system.settings.storage_path)),
            ("logs", str(self.system.folder / "*.log")),
        ]

    def lines_to_try(self) -> list[str]:
        """Return shell commands that work in another terminal as they stand."""
        url = "" if self.system.api_port == API_PORT else f" --url {self.system.api_url}/webhooks/sume"
        jobs = f"{self.system.api_url}/v1/jobs"
        return [
            f". {shlex.quote(str(self.env_file))}",
            f"sume-jobs send --job-id job_first{url}",
            "sume-jobs show job_first",
            f"ls {shlex.quote(str(self.system.settings.storage_path / 'job_first'))}",
            f"sume-jobs send --job-id job_first --times 3{url}",
            f"sume-jobs send --event job.failed{url}",
            "sume-jobs expect job_lost --due-in 1",
            "sume-jobs list",
            f'curl -s -H "Authorization: Bearer $OPS_TOKEN" {jobs}',
        ]


@contextmanager
def dev_system(*, port: int | None = None, dashboard_port: int | None = None) -> Iterator[Dev]:
    """Lend the system, with its files in `./.dev`, and stop it at the end.

    Its simulated Sume knows every job it is asked about: completed, with one picture.
    Raises SandboxError when a port that was asked for is taken or another one runs here.
    """
    api_port = choose_port(port, usual=API_PORT)
    shown_at = choose_port(dashboard_port, usual=DASHBOARD_PORT)
    with dev_folder() as folder:
        wanted = System(folder, api_port=api_port, dashboard_port=shown_at, every_job=png(), settings=SETTINGS)
        with wanted as system:
            yield Dev(system, f"http://{LOOPBACK}:{shown_at}/", write_env(folder, system.environment))


def choose_port(asked: int | None, *, usual: int) -> int:
    """Return the port that was asked for, else the usual one or, where that is taken, any free one."""
    if can_listen(asked or usual):
        return asked or usual
    if asked is not None:
        raise SandboxError(f"port {asked} is taken")
    return free_port()


def can_listen(port: int) -> bool:
    """Whether a server could listen on a loopback port now."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True
