"""Worker and scheduler stop with exit 2 where the storage is not the one the database knows."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path

import pytest

from shared.claims.postgres.store import PostgresStore
from shared.claims.schema import migrate
from shared.config import child_environment
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import Process, python_module
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import STALE
from tests.conftest import started

SOON = timedelta(seconds=30)
COMMANDS = [("worker", "--processes", "2"), ("scheduler",), ("scheduler", "--once")]

Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path, redis_url: str) -> Iterator[Start]:
    """Return a starter of our processes, on a storage of the test's own."""
    with ExitStack() as ended:

        def start(command: tuple[str, ...], database_url: str) -> Process:
            storage_url = f"file://{tmp_path / 'artifacts'}"
            env = child_environment(DATABASE_URL=database_url, REDIS_URL=redis_url, STORAGE_URL=storage_url)
            return ended.enter_context(Process(python_module(*command), name=command[0], folder=tmp_path, env=env))

        yield start


def lines_for_people(process: Process) -> list[str]:
    """Return what it wrote beside its log."""
    return [line for line in process.log().splitlines() if not line.startswith("{")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_strange_storage_stops_it_with_one_line(
    start: Start, tmp_path: Path, database_url: str, command: tuple[str, ...]
) -> None:
    """It says why and what to do, and nothing is written there."""
    subject = PostgresSubject(database_url)
    with closing(subject.store):
        subject.store.keep_storage_id("another")
        subject.deliver("job_demo")
        process = start(command, database_url)
        assert process.wait(within=SOON) == 2
        (line,) = lines_for_people(process)
        missing = f"there is no .sume-storage-id in {tmp_path / 'artifacts'}; "
        assert line.startswith(f"STORAGE_URL: not the storage this database knows: {missing}")
        assert "sume-jobs migrate --adopt-storage" in line
        assert subject.take("job_demo").attempt == 1
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize("command", COMMANDS[:2], ids=" ".join)
def test_a_database_that_is_away_is_waited_for_and_then_asked(start: Start, command: tuple[str, ...]) -> None:
    """Its first answer decides, although no job is there to work on."""
    postgres = Postgres(options={"fsync": "off"})
    with closing(postgres):
        started(postgres)
        migrate(postgres.url)
        with closing(PostgresStore(postgres.url, stale=STALE)) as store:
            store.keep_storage_id("another")
        postgres.stop()
        process = start(command, postgres.url)
        process.wait_for_log("storage.unrecognised")
        process.wait_for_log("worker.started" if command[0] == "worker" else "scheduler.started")
        assert process.running
        started(postgres)
        assert process.wait(within=SOON) == 2
        assert {line.split(":")[0] for line in lines_for_people(process)} == {"STORAGE_URL"}
