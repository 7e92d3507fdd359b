"""Toy workers on a real Redis."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.claims.records import Message
from shared.config import child_environment
from shared.queue import Queue
from shared.sandbox.family import descendants
from shared.sandbox.process import Process, python_module
from shared.sandbox.sume import Sume
from tests.conftest import SIGNING_SECRET, MakeSettings
from tests.worker.bench import Bench, open_bench

PROJECT = Path(__file__).parents[2]


@dataclass
class Toys:
    """A folder of marks, a queue, and the means to start toy workers on them."""

    folder: Path
    queue: Queue
    start: Callable[..., Process]
    on: Callable[[str], "Toys"]
    """The same on another Redis."""

    def send(self, *job_ids: str) -> None:
        """Put messages about jobs into the queue."""
        self.queue.enqueue_many([Message(job_id, "job.completed", "OK", 1) for job_id in job_ids])

    def began(self, job_id: str) -> bool:
        """Whether the work on a job began."""
        return (self.folder / f"{job_id}.began").exists()

    def ended(self, job_id: str) -> bool:
        """Whether the work on a job ended by itself."""
        return (self.folder / f"{job_id}.ended").exists()

    def worker_of(self, job_id: str) -> int:
        """Return the process id of the worker that took a job last."""
        return int((self.folder / f"{job_id}.began").read_text(encoding="ascii"))


@pytest.fixture
def toys(tmp_path: Path, redis_url: str, make_settings: MakeSettings) -> Iterator[Toys]:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    with ExitStack() as stack:

        def on(url: str) -> Toys:
            queue = Queue(make_settings(redis_url=url))
            stack.callback(queue.close)

            def start(processes: int = 1, *options: str, silence: float = 30, stop: float = 8.5, **env: str) -> Process:
                environment = {
                    "DATABASE_URL": "postgresql://127.0.0.1:1/unused",
                    "REDIS_URL": url,
                    "STORAGE_URL": f"file://{folder}",
                    "PYTHONPATH": str(PROJECT),
                }
                command = python_module(
                    "tests.worker.toy_supervisor", str(processes), str(silence), str(stop), *options
                )
                env = child_environment() | environment | env
                return stack.enter_context(Process(command, name="toys", folder=tmp_path, env=env))

            return Toys(folder, queue, start, on)

        yield on(redis_url)


def children(process: Process) -> set[int]:
    """Return the worker processes below a supervisor."""
    return descendants(process.pid)


@pytest.fixture
def sume() -> Iterator[Sume]:
    """A simulated Sume of the test's own."""
    with Sume(secret=SIGNING_SECRET) as simulated:
        yield simulated


@pytest.fixture
def bench(database_url: str, make_settings: MakeSettings, sume: Sume) -> Iterator[Bench]:
    settings = make_settings(
        database_url=database_url,
        redis_url="redis://127.0.0.1:1/0",
        sume_api_key=sume.api_key,
        sume_api_base_url=sume.api_url,
        max_attempts=3,
        retry_for_seconds=0,
        lease_seconds=5,
        download_stall_seconds=2,
    )
    with open_bench(settings, sume) as bench:
        yield bench
