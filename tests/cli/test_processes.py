"""What `api`, `worker` and `scheduler` promise: to be those processes."""

import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from shared.config import child_environment
from tests.cli.conftest import SCRIPT, run_script

DEADLINE_SECONDS = 30


@pytest.mark.parametrize("command", ["api", "worker", "scheduler"])
def test_a_missing_setting_is_the_processes_own_exit_2(tmp_path: Path, command: str) -> None:
    """Its exit status and its line are passed through."""
    ran = run_script(command, folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "DATABASE_URL: is not set" in ran.err
    assert ran.err.count("\n") == 1


def test_a_folder_of_the_users_is_not_taken_for_ours(tmp_path: Path) -> None:
    """A project may well have a package named api."""
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").touch()
    (tmp_path / "api" / "__main__.py").write_text("raise SystemExit('not ours')")
    assert "DATABASE_URL" in run_script("api", folder=tmp_path).err


def test_signals_reach_the_process(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """The pid that was started is the receiver's, SIGTERM ends it with 0, and its options were passed on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = child_environment(DATABASE_URL=database_url, REDIS_URL=redis_url)
    arguments = [str(SCRIPT), "api", "--port", str(port)]
    with subprocess.Popen(arguments, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + DEADLINE_SECONDS
            while not answers(f"http://127.0.0.1:{port}/livez"):
                assert process.poll() is None
                assert time.monotonic() < deadline
        finally:
            process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0


def answers(url: str) -> bool:
    """Whether the receiver lives; waits a moment for it."""
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=3), trust_env=False) as client:
            return client.get(url).is_success
    except httpx.HTTPError:
        return False
