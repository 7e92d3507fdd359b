"""Everything that runs in a chaos run: servers, our processes behind links of their own, and the simulated Sume."""

import secrets
import struct
import threading
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Self

from shared.claims import open_store
from shared.claims.schema import migrate
from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import Process, python_module
from shared.sandbox.sume.deliveries import Deliveries
from shared.sandbox.system import settings_of
from shared.sandbox.valkey import Valkey
from tests.chaos.disk import Disk
from tests.chaos.jobs import PlannedJob
from tests.chaos.proxy import Link, Network

PROJECT = Path(__file__).parents[2]
START_WITHIN = timedelta(seconds=40)
MODULES = {
    "api": ("api", "--port", "{port}", "--processes", "2"),
    "worker-1": ("worker", "--processes", "2"),
    "worker-2": ("worker", "--processes", "2"),
    "scheduler-1": ("scheduler",),
    "scheduler-2": ("scheduler",),
    "scheduler-3": ("scheduler",),
}
ALWAYS = ("sume", "api", "worker-1", "worker-2", "scheduler-1")
"""What runs throughout; the other schedulers come and go."""
LEASE_SECONDS = 5
SETTINGS = {
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "SWEEP_INTERVAL_SECONDS": "1",
    "CLAIM_STALE_SECONDS": "5",
    "MAX_ATTEMPTS": "5",
    "RETRY_BASE_SECONDS": "0.5",
    "RETRY_MAX_SECONDS": "3",
    "POLL_INTERVAL_SECONDS": "1",
    "POLL_MAX_SECONDS": "3",
    "DOWNLOAD_STALL_SECONDS": "4",
    "HANDLER": "tests.chaos.handler:handle",
    "LOG_LEVEL": "info",
}
"""Impatient, so that what takes minutes in production takes seconds; every other limit is as in production."""


class World:
    """A context manager: starts all of it, and leaves nothing behind but its folder.

    `down` names the processes that a fault has taken down on purpose; any other that has ended did so by itself.
    """

    def __init__(self, folder: Path, jobs: list[PlannedJob], *, seed: int) -> None:
        self.folder = folder
        self.jobs = jobs
        self.seed = seed
        self.down: set[str] = set()
        self.down_lock = threading.Lock()
        self.postgres = Postgres(options={"max_connections": "60", "superuser_reserved_connections": "0"})
        self.valkey = Valkey()
        self.network = Network()
        self.disk = Disk(folder / "artifacts", needed=sum(file.size for job in jobs for file in job.files))
        self.processes: dict[str, Process] = {}
        self.links: dict[str, dict[str, Link]] = {}
        self.api_port, self._sume_ports = free_port(), (free_port(), free_port())
        self._api_key, self._secret = f"sk_{secrets.token_urlsafe(16)}", f"whsec_{secrets.token_urlsafe(24)}"
        self._opened = ExitStack()
        self.deliveries = Deliveries(self._secret.encode(), f"{self.api_url}/webhooks/sume")
        self.environment = {
            "SUME_COM_WEBHOOK_SIGNING_SECRET": self._secret,
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            "STORAGE_URL": f"file://{self.disk.root}",
            "STORAGE_MIN_FREE_BYTES": str(self.disk.floor if seed % 2 else 1),
            "ARTIFACT_HOSTS": LOOPBACK,
            "ARTIFACT_ALLOW_INSECURE": "true",
            "SUME_API_BASE_URL": f"http://{LOOPBACK}:{self._sume_ports[0]}",
            "SUME_API_KEY": self._api_key,
            "OPS_TOKEN": secrets.token_urlsafe(16),
            **SETTINGS,
        }
        self.settings = settings_of(self.environment)
        self.store = open_store(self.settings)
        """Straight to the database, past every link."""

    @property
    def api_url(self) -> str:
        """The origin of our api."""
        return f"http://{LOOPBACK}:{self.api_port}"

    @property
    def bodies(self) -> Path:
        """Where the simulated Sume has written what is to be delivered."""
        return self.folder / "bodies.jsonl"

    def start(self) -> Self:
        """Start everything and return when deliveries can be claimed."""
        opened = self._opened
        try:
            for resource in (self.network, self.disk, self.postgres, self.valkey, closing(self.store)):
                opened.enter_context(resource)
            migrate(self.postgres.url)
            self._prepare_sume()
            for name in MODULES:
                self._prepare(name)
            for name in ALWAYS:
                opened.callback(self.processes[name].kill)
                self.processes[name].start()
            sume = self.processes["sume"]
            sume.wait_for(self.bodies.exists, what="bodies", within=START_WITHIN)
            self.processes["api"].wait_for_http(f"{self.api_url}/readyz", within=START_WITHIN)
            for name in ("worker-1", "worker-2"):
                self.processes[name].wait_for_log("worker.started", within=START_WITHIN)
        except BaseException:
            self.close()
            raise
        return self

    def move_clock(self, name: str, seconds: float) -> None:
        """Set the wall clock of a process, and of its children, ahead by so much."""
        path = self._clock(name)
        with path.open("r+b") as file:
            file.write(struct.pack("d", seconds))

    def settle(self) -> None:
        """End every fault: heal all links, set all clocks right, start whatever does not run."""
        for links in self.links.values():
            for link in links.values():
                link.heal()
        for name in MODULES:
            self.move_clock(name, 0)
        for name in ALWAYS:
            self.processes[name].resume()
            if not self.processes[name].running:
                self.processes[name].start()

    def ended_by_themselves(self) -> dict[str, int | None]:
        """Return the processes that nobody took down and that have ended all the same, with their exit codes."""
        with self.down_lock:
            return {
                name: self.processes[name].exit_code
                for name in ALWAYS
                if name not in self.down and not self.processes[name].running
            }

    def logs(self) -> str:
        """Return what every process of ours has written."""
        return "\n".join(self.processes[name].log() for name in MODULES)

    def close(self) -> None:
        """Stop everything."""
        self._opened.close()

    def _clock(self, name: str) -> Path:
        path = self.folder / f"{name}.clock"
        if not path.exists():
            path.write_bytes(struct.pack("d", 0.0))
        return path

    def _prepare(self, name: str) -> None:
        """Define a process of ours, with links of its own."""
        links = {server.name: self.network.link(server.port) for server in (self.postgres, self.valkey)}
        self.links[name] = links
        module, *arguments = (part.format(port=self.api_port) for part in MODULES[name])
        environment = child_environment(
            **self.environment
            | {
                "DATABASE_URL": self.postgres.url.replace(f":{self.postgres.port}/", f":{links['postgres'].port}/"),
                "REDIS_URL": self.valkey.url.replace(f":{self.valkey.port}/", f":{links['valkey'].port}/"),
                "PYTHONPATH": f"{PROJECT / 'tests' / 'chaos' / 'clockwork'}:{PROJECT}",
                "CHAOS_CLOCK": str(self._clock(name)),
            }
        )
        self.processes[name] = Process(
            python_module(module, *arguments), name=name, folder=self.folder, env=environment
        )
        self._opened.callback(self.processes[name].kill)

    def _prepare_sume(self) -> None:
        arguments = (self.seed, len(self.jobs), *self._sume_ports, self._api_key, self.bodies)
        command = python_module("tests.chaos.sume_host", *map(str, arguments))
        environment = child_environment(PYTHONPATH=str(PROJECT))
        self.processes["sume"] = Process(command, name="sume", folder=self.folder, env=environment)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
