"""The command, as a process on real servers: it starts, survives outages, stops."""

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from shared.claims.schema import migrate
from shared.config import child_environment
from shared.queue import Queue
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import Process, python_module
from shared.sandbox.server import Server
from shared.sandbox.sume import Answer, Sume
from shared.sandbox.valkey import Valkey
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import STALE
from tests.conftest import MakeSettings, started

STOP_WITHIN = timedelta(seconds=10)
RECOVER_WITHIN = timedelta(seconds=10)
UNREACHABLE = "postgresql://u:planted-password@127.0.0.1:1/db"

MakeScheduler = Callable[..., Process]


@pytest.fixture
def make_scheduler(tmp_path: Path) -> Iterator[MakeScheduler]:
    """Return a maker of scheduler processes that are gone when the test ends."""
    with ExitStack() as ended:

        def make(*arguments: str, **env: str) -> Process:
            folder = tmp_path / f"scheduler{len(list(tmp_path.glob('scheduler*')))}"
            folder.mkdir()
            command = python_module("scheduler", *arguments)
            env = {"STORAGE_URL": f"file://{tmp_path / 'artifacts'}"} | env
            process = Process(command, name="scheduler", folder=folder, env=child_environment(**env))
            return ended.enter_context(process)

        yield make


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A migrated server of the test's own, to be broken."""
    server = Postgres(options={"fsync": "off"})
    started(server)
    migrate(server.url)
    yield server
    server.close()


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    """A Redis of the test's own, to be broken."""
    server = Valkey()
    started(server)
    yield server
    server.close()


def log_count(process: Process, event: str, duty: str) -> int:
    lines = process.log().splitlines()
    return sum(f'"event":"{event}"' in line and f'"duty":"{duty}"' in line for line in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(
    make_scheduler: MakeScheduler, database_url: str, redis_url: str, number: signal.Signals
) -> None:
    """Exit 0, without a traceback, and it said at its start that polling is off."""
    process = make_scheduler(DATABASE_URL=database_url, REDIS_URL=redis_url)
    process.wait_for_log("scheduler.started")
    assert process.terminate(by=number, within=STOP_WITHIN) == 0
    assert process.log().count("polling.disabled") == 1
    assert "scheduler.stopped" in process.log()
    assert "Traceback" not in process.log()


def test_a_hanging_sume_holds_up_neither_a_sweep_nor_the_stop(
    make_scheduler: MakeScheduler, subject: PostgresSubject, redis_url: str, queue: Queue
) -> None:
    """While a poll hangs, a claim that becomes overdue is queued; then SIGTERM ends all of it."""
    with Sume(secret="s") as sume:
        sume.override("job_hang", Answer.data({}, held=threading.Event()))
        subject.store.expect("job_hang", status_url=None, due_in=timedelta(0))
        process = make_scheduler(
            DATABASE_URL=subject.database_url,
            REDIS_URL=redis_url,
            SUME_API_KEY=sume.api_key,
            SUME_API_BASE_URL=sume.api_url,
            SWEEP_INTERVAL_SECONDS="0.2",
        )
        process.wait_for(lambda: sume.api_requests.all() != [], what="a poll")
        subject.deliver("job_a")
        subject.let_pass(STALE)
        process.wait_for(lambda: queue.waiting_ids() == {"job_a"}, what="a sweep", within=timedelta(seconds=5))
        assert process.terminate(within=STOP_WITHIN) == 0


def test_frozen_servers_hold_up_no_stop(
    make_scheduler: MakeScheduler, own_postgres: Postgres, own_valkey: Valkey
) -> None:
    """A Postgres that accepts and never answers is abandoned."""
    process = make_scheduler(DATABASE_URL=own_postgres.url, REDIS_URL=own_valkey.url, SWEEP_INTERVAL_SECONDS="0.1")
    process.wait_for_log("scheduler.started")
    own_postgres.pause()
    own_valkey.pause()
    assert process.terminate(within=STOP_WITHIN) == 0


@pytest.mark.parametrize(("broken", "interval"), [("postgres", "10"), ("redis", "1")])
def test_it_recovers_within_ten_seconds_of_an_outage(
    make_scheduler: MakeScheduler,
    make_settings: MakeSettings,
    own_postgres: Postgres,
    own_valkey: Valkey,
    *,
    broken: str,
    interval: str,
) -> None:
    """With the default interval too, and saying so once at the beginning and once at the end."""
    server: Server = own_postgres if broken == "postgres" else own_valkey
    subject = PostgresSubject(own_postgres.url)
    subject.deliver("job_a")
    subject.let_pass(STALE)
    queue = Queue(make_settings(redis_url=own_valkey.url))
    env = {"DATABASE_URL": own_postgres.url, "REDIS_URL": own_valkey.url, "SWEEP_INTERVAL_SECONDS": interval}
    process = make_scheduler(**env)
    process.wait_for(lambda: queue.waiting_ids() == {"job_a"}, what="the first sweep")

    subject.deliver("job_b")
    server.stop()
    process.wait_for(lambda: log_count(process, "duty.failed", "sweep") > 0, what="a failed sweep")
    server.start()
    before = time.monotonic()
    subject.let_pass(STALE)
    process.wait_for(lambda: "job_b" in queue.waiting_ids(), what="recovery", within=RECOVER_WITHIN)
    assert time.monotonic() - before < RECOVER_WITHIN.total_seconds()
    process.wait_for(lambda: log_count(process, "duty.recovered", "sweep") == 1, what="word of the recovery")
    assert log_count(process, "duty.failed", "sweep") == 1
    assert process.terminate(within=STOP_WITHIN) == 0
    subject.store.close()
    queue.close()


def test_servers_that_come_late_stop_nothing(
    make_scheduler: MakeScheduler, make_settings: MakeSettings, own_postgres: Postgres, own_valkey: Valkey
) -> None:
    """Started before Postgres and Redis it keeps trying, and works when they are there."""
    subject = PostgresSubject(own_postgres.url)
    subject.deliver("job_a")
    subject.let_pass(STALE)
    own_postgres.stop()
    own_valkey.stop()
    process = make_scheduler(DATABASE_URL=own_postgres.url, REDIS_URL=own_valkey.url)
    process.wait_for_log("duty.failed", times=4)
    own_postgres.start()
    own_valkey.start()
    queue = Queue(make_settings(redis_url=own_valkey.url))
    process.wait_for(lambda: queue.waiting_ids() == {"job_a"}, what="the first sweep", within=RECOVER_WITHIN)
    subject.store.close()
    queue.close()


def test_once_does_every_duty(
    make_scheduler: MakeScheduler, subject: PostgresSubject, redis_url: str, queue: Queue, tmp_path: Path
) -> None:
    """Sweep, poll, prune and clean-up, then exit 0."""
    for job_id in ("job_overdue", "job_old"):
        subject.deliver(job_id)
    subject.store.finish("job_old", [], token=subject.take("job_old").token, acknowledged=False)
    subject.let_pass(timedelta(days=31))
    partial = tmp_path / "files/.partial/job_x/8b0fd3b0-53bb-4d3b-9a0c-3d8d7a0b6c11/00"
    partial.parent.mkdir(parents=True)
    partial.touch()
    with Sume(secret="s") as sume:
        sume.add_job("job_found", artifacts=[b"picture"])
        subject.store.expect("job_found", status_url=None, due_in=timedelta(0))
        process = make_scheduler(
            "--once",
            DATABASE_URL=subject.database_url,
            REDIS_URL=redis_url,
            SUME_API_KEY=sume.api_key,
            SUME_API_BASE_URL=sume.api_url,
            STORAGE_URL=f"file://{tmp_path / 'files'}",
        )
        assert process.wait() == 0
    assert queue.waiting_ids() == {"job_overdue", "job_found"}
    old = subject.store.get_job("job_old")
    assert old is not None
    assert old.pruned_at is not None
    assert not partial.exists()


def test_once_says_what_failed(make_scheduler: MakeScheduler, database_url: str) -> None:
    """Exit 1 and one line; the duties that could be done were."""
    process = make_scheduler("--once", DATABASE_URL=database_url, REDIS_URL="redis://127.0.0.1:1/0")
    assert process.wait() == 1
    last = process.log().splitlines()[-1]
    assert re.fullmatch(r"failed: sweep \(Redis: .*\), clean_registries \(Redis: .*\)", last)


def test_no_secret_is_logged(make_scheduler: MakeScheduler) -> None:
    """Not even where every connection fails (I9)."""
    process = make_scheduler(
        "--once",
        DATABASE_URL=UNREACHABLE,
        REDIS_URL="redis://:planted-password@127.0.0.1:1/0",
        SUME_API_KEY="planted-password",
    )
    assert process.wait() == 1
    assert "sweep (PostgreSQL cannot be reached" in process.log()
    assert "planted" not in process.log()


@pytest.mark.parametrize(
    ("env", "line"),
    [
        ({}, "DATABASE_URL: is not set"),
        ({"DATABASE_URL": UNREACHABLE}, "REDIS_URL: is not set"),
        ({"DATABASE_URL": UNREACHABLE, "REDIS_URL": "redis://h", "POLL_MAX_SECONDS": "0"}, "POLL_MAX_SECONDS: "),
    ],
)
def test_unusable_settings_are_one_line_and_exit_2(
    make_scheduler: MakeScheduler, env: dict[str, str], line: str
) -> None:
    """Before anything is started."""
    process = make_scheduler(**env)
    assert process.wait() == 2
    [said] = process.log().splitlines()
    assert said.startswith(line)


def test_wrong_usage_is_exit_2(make_scheduler: MakeScheduler) -> None:
    assert make_scheduler("--twice").wait() == 2
