"""The process: how it starts, how it ends, and what a kill leaves behind."""

import http.client
import os
import re
import signal
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK
from shared.sandbox.process import Process, python_module
from shared.sandbox.valkey import Valkey
from tests.api.harness import UNREACHABLE_DATABASE, UNREACHABLE_REDIS
from tests.api.running import RunningApi, post
from tests.conftest import started

STOP_WITHIN = timedelta(seconds=10)


def stored(database_url: str) -> dict[str, str]:
    """Return the state of every job."""
    with psycopg.connect(database_url) as connection:
        return dict(connection.execute("SELECT job_id, state FROM sume_jobs").fetchall())


class Load:
    """Clients that deliver job after job until they are told to stop or their connection ends."""

    def __init__(self, api: RunningApi, *, clients: int) -> None:
        self.answered: set[str] = set()
        self._api = api
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._deliver, args=(n,)) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def _deliver(self, number: int) -> None:
        client = self._api.client()
        count = 0
        try:
            while not self._stopping.is_set():
                job_id, count = f"job-{number}-{count}", count + 1
                if post(client, job_id)[0] == 204:
                    self.answered.add(job_id)
        except (OSError, http.client.HTTPException):
            return
        finally:
            client.close()

    def wait_for(self, answers: int) -> None:
        """Return when so many deliveries were answered 204."""
        deadline = time.monotonic() + 30
        while len(self.answered) < answers:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self) -> None:
        """End the clients."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_sigterm_under_load_loses_nothing_answered(
    processes: str, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """After SIGTERM it ends with 0 within ten seconds, and every delivery answered 204 is stored."""
    with RunningApi(tmp_path, "--processes", processes, DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        load = Load(api, clients=8)
        load.wait_for(50)
        assert api.process.terminate(within=STOP_WITHIN) == 0
        load.stop()
    assert len(load.answered) >= 50
    assert load.answered <= stored(database_url).keys()


@pytest.mark.parametrize("processes", ["1", "3"])
def test_sigterm_while_starting_is_an_orderly_end(processes: str, tmp_path: Path) -> None:
    """Told to stop before it serves, it ends with 0 too, whichever of its processes are up already."""
    api = RunningApi(tmp_path, "--processes", processes, DATABASE_URL=UNREACHABLE_DATABASE, REDIS_URL=UNREACHABLE_REDIS)
    with api.process:
        api.process.wait_for(lambda: listens(api.port), what="listening")
        assert api.process.terminate(within=STOP_WITHIN) == 0


def listens(port: int) -> bool:
    """Whether connections are taken there."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def test_sigterm_with_redis_frozen_still_ends_in_time(tmp_path: Path, database_url: str) -> None:
    """A drain that cannot be finished does not hold up the end."""
    valkey = Valkey()
    try:
        started(valkey)
        with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=valkey.url) as api:
            valkey.pause()
            for number in range(5):
                assert api.deliver(f"job-{number}")[0] == 204
            assert api.process.terminate(within=STOP_WITHIN) == 0
    finally:
        valkey.close()


def test_a_kill_between_commit_and_enqueue_leaves_a_claim(tmp_path: Path, database_url: str) -> None:
    """When the process dies with its message unsent, the claim stands for the sweep to find."""
    valkey = Valkey()
    try:
        started(valkey)
        with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=valkey.url) as api:
            valkey.pause()
            assert api.deliver("job-unsent")[0] == 204
            api.process.kill()
    finally:
        valkey.close()
    assert stored(database_url) == {"job-unsent": "claimed"}


def test_several_processes_share_a_port_and_their_counters(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """A receiver that is killed is replaced, and the metrics are those of all of them together."""
    with RunningApi(tmp_path, "--processes", "2", DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        api.process.wait_for_log("api.started", times=2)
        for number in range(20):
            assert api.deliver(f"job-{number}")[0] == 204
        assert 'sume_deliveries_total{code="accepted"} 20.0' in api.get("/metrics")
        victim = int(re.findall(r'"pid":(\d+)', api.process.log())[0])
        os.kill(victim, signal.SIGKILL)
        api.process.wait_for_log("api.started", times=3)
        assert api.deliver("job-after")[0] == 204
        assert 'sume_deliveries_total{code="accepted"} 21.0' in api.get("/metrics")
        assert api.process.terminate(within=STOP_WITHIN) == 0


def test_receivers_whose_parent_is_killed_end(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """Orphans give the port back, so that the next start finds it free."""
    with RunningApi(tmp_path, "--processes", "2", DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        api.process.wait_for_log("api.started", times=2)
        api.process.send(signal.SIGKILL)
        api.process.wait()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if not listens(api.port):
                return
        pytest.fail("somebody still listens")


def test_no_foreign_code_can_take_the_wish_to_stop_for_an_error(tmp_path: Path) -> None:
    """Pydantic turns an exception that strikes while it builds a model into one of its own."""
    program = """if True:
        from api.__main__ import stop_before_serving
        try:
            stop_before_serving(15, None)
        except BaseException:
            raise ValueError
    """
    with Process([sys.executable, "-c", program], name="told", folder=tmp_path, env=child_environment()) as process:
        assert process.wait() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child sees it once it serves")
def test_receivers_whose_parent_is_killed_while_they_start_never_listen(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """They would hold the port for as long as they take to start, and the next start would fail."""
    api = RunningApi(tmp_path, "--processes", "2", DATABASE_URL=database_url, REDIS_URL=redis_url)
    with api.process as process:
        process.wait_for_log("receiver.started", times=2)
        process.send(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 10
        while listens(api.port):
            assert time.monotonic() < deadline
        assert "api.started" not in process.log()


def ended(folder: Path, *arguments: str, **settings: str) -> tuple[int, str]:
    """Run `python -m api` to its end; returns the exit status and all its output."""
    process = Process(python_module("api", *arguments), name="api", folder=folder, env=child_environment(**settings))
    with process:
        return process.wait(), process.log()


def test_unusable_settings_are_one_line_and_exit_2(tmp_path: Path) -> None:
    """A missing or wrong setting is named, its value is not, and nothing starts."""
    assert ended(tmp_path) == (2, "DATABASE_URL: is not set; set it in the environment or in .env\n")


def test_a_value_is_not_repeated_when_it_is_refused(tmp_path: Path) -> None:
    """The line about a wrong value does not show it: it may hold a password."""
    status, output = ended(tmp_path, DATABASE_URL="mysql://user:planted-pw@host/db", REDIS_URL=UNREACHABLE_REDIS)
    assert (status, output.count("\n")) == (2, 1)
    assert output.startswith("DATABASE_URL: ")
    assert "planted-pw" not in output


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--processes", "0"], ["--nonsense"]])
def test_wrong_usage_is_exit_2(arguments: list[str], tmp_path: Path) -> None:
    """What cannot be meant is refused with the usage."""
    status, output = ended(tmp_path, *arguments)
    assert (status, "usage: python -m api" in output) == (2, True)


def test_a_port_in_use_is_one_line_and_exit_1(tmp_path: Path) -> None:
    """The line names the address."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = str(taken.getsockname()[1])
        status, output = ended(tmp_path, "--port", port, DATABASE_URL=UNREACHABLE_DATABASE, REDIS_URL=UNREACHABLE_REDIS)
    assert (status, output) == (1, f"cannot listen on {LOOPBACK}:{port}: Address already in use\n")
