"""The whole of sume-jobs on loopback: real servers, a simulated Sume, and our own processes."""

import secrets
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Self

from shared.claims import open_store
from shared.claims.schema import migrate
from shared.config import Settings, child_environment
from shared.queue import Queue
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import POLL_SECONDS, Process, python_module
from shared.sandbox.sume import Sume
from shared.sandbox.valkey import Valkey
from shared.sandbox.wheels import SandboxError

START_WITHIN = timedelta(seconds=30)
STOP_WITHIN = timedelta(seconds=9)
SENT_AGAIN_AFTER = timedelta(seconds=2)


def settings_of(environment: Mapping[str, str]) -> Settings:
    """Return the settings of this environment alone, whatever stands in the real one or in a developer's `.env`."""
    values = {name.lower(): value for name, value in environment.items()}
    return Settings.load(_env_file=None, _env_prefix="no_variable_starts_like_this_", **values)


class System:
    """PostgreSQL, Valkey, a simulated Sume, api, scheduler and as many workers as wanted.

    As a context manager it starts and, at the end, stops all of them. Artifacts and logs lie in the folder, which
    must exist and stays. `settings` (named as in the environment) win over those that hold it together. There is
    a dashboard where `dashboard_port` is given; `every_job` is for the simulated Sume.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 1,
        api_port: int | None = None,
        dashboard_port: int | None = None,
        every_job: bytes | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        secret = f"whsec_{secrets.token_urlsafe(24)}"
        self.folder = folder.absolute()
        self.postgres = Postgres()
        self.valkey = Valkey()
        self.api_port = api_port or free_port()
        self.sume = Sume(
            secret=secret,
            api_key=f"sk_sandbox_{secrets.token_urlsafe(16)}",
            webhook_url=f"{self.api_url}/webhooks/sume",
            retry_wait=SENT_AGAIN_AFTER,
            every_job=every_job,
        )
        self.environment = {
            "SUME_COM_WEBHOOK_SIGNING_SECRET": secret,
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            "STORAGE_URL": f"file://{self.folder / 'artifacts'}",
            "STORAGE_MIN_FREE_BYTES": "0",
            "ARTIFACT_HOSTS": LOOPBACK,
            "ARTIFACT_ALLOW_INSECURE": "true",
            "SUME_API_BASE_URL": self.sume.api_url,
            "SUME_API_KEY": self.sume.api_key,
            "OPS_TOKEN": secrets.token_urlsafe(16),
            **(settings or {}),
        }
        self.settings = settings_of(self.environment)
        self.store = open_store(self.settings)
        self.processes: dict[str, Process] = {}
        self._workers = workers
        self._dashboard_port = dashboard_port
        self._opened = ExitStack()

    @property
    def api_url(self) -> str:
        """The origin of our api."""
        return f"http://{LOOPBACK}:{self.api_port}"

    def start(self) -> Self:
        """Start everything and return when deliveries can be claimed, worked on and looked at."""
        try:
            self._opened.enter_context(self.postgres)
            self._opened.enter_context(self.valkey)
            self._opened.enter_context(self.sume)
            self._opened.enter_context(closing(self.store))
            migrate(self.postgres.url)
            self._opened.callback(self._stop_processes)
            self._start_processes()
        except BaseException:
            self.close()
            raise
        return self

    def run(self, name: str, module: str, *arguments: str) -> Process:
        """Start one more process of ours with the settings of this system."""
        env = child_environment(**self.environment)
        process = Process(python_module(module, *arguments), name=name, folder=self.folder, env=env)
        self.processes[name] = process
        return process.start()

    def ended(self) -> dict[str, str]:
        """Return what should run and does not, with how it ended."""
        processes = {"postgres": self.postgres.process, "valkey": self.valkey.process, **self.processes}
        return {name: f"exit status {process.exit_code}" for name, process in processes.items() if not process.running}

    def until(self, happened: Callable[[], bool], *, what: str, within: timedelta) -> None:
        """Return once `happened()` is true; raise SandboxError when time is up."""
        deadline = time.monotonic() + within.total_seconds()
        while not happened():
            if time.monotonic() > deadline:
                raise SandboxError(f"{what} did not happen within {within.total_seconds():g} s")
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Stop everything, our processes first; what does not end in time is killed."""
        self._opened.close()

    def _start_processes(self) -> None:
        api = self.run("api", "api", "--port", str(self.api_port))
        for number in range(1, self._workers + 1):
            self.run(f"worker-{number}", "worker")
        self.run("scheduler", "scheduler")
        if self._dashboard_port is not None:
            dashboard = self.run("dashboard", "shared.dashboard", "--port", str(self._dashboard_port))
            dashboard.wait_for_http(f"http://{LOOPBACK}:{self._dashboard_port}/livez", within=START_WITHIN)
        api.wait_for_http(f"{self.api_url}/readyz", within=START_WITHIN)
        self._wait_for_workers()

    def _wait_for_workers(self) -> None:
        with closing(Queue(self.settings)) as queue:
            for name, process in self.processes.items():
                if name.startswith("worker"):
                    process.wait_for(lambda: queue.workers() >= self._workers, what="listening", within=START_WITHIN)

    def _stop_processes(self) -> None:
        """Ask all of them to stop at once, and wait for them together."""
        deadline = time.monotonic() + STOP_WITHIN.total_seconds()
        try:
            for process in self.processes.values():
                process.send(signal.SIGTERM)
            while any(process.running for process in self.processes.values()) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        finally:
            for process in self.processes.values():
                process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
