"""`python -m shared.dashboard` as a process."""

import subprocess
import sys
from pathlib import Path

import pytest

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.process import Process, python_module


def test_a_life(tmp_path: Path) -> None:
    """It starts while Redis is away, serves on loopback by default and ends with 0 on SIGTERM."""
    port = free_port()
    env = child_environment(REDIS_URL=f"redis://{LOOPBACK}:{free_port()}/0", OPS_TOKEN="token-of-ops")
    command = python_module("shared.dashboard", "--port", str(port))
    with Process(command, name="dashboard", folder=tmp_path, env=env) as dashboard:
        dashboard.wait_for_http(f"http://{LOOPBACK}:{port}/livez")
        dashboard.wait_for_log(rf'"host":"{LOOPBACK}".*dashboard\.started')
        assert dashboard.terminate() == 0
        assert "token-of-ops" not in dashboard.log()


@pytest.mark.parametrize(
    ("given", "arguments", "status", "named"),
    [
        ({"REDIS_URL": "redis://127.0.0.1:1"}, (), 2, "OPS_TOKEN: is not set"),
        ({"REDIS_URL": "redis://127.0.0.1:1", "OPS_TOKEN": ""}, (), 2, "OPS_TOKEN: is not set"),
        ({"OPS_TOKEN": "t"}, (), 2, "REDIS_URL: is not set"),
        ({"REDIS_URL": "redis://127.0.0.1:1", "OPS_TOKEN": "t"}, ("--port", "0"), 2, "from 1 to 65535"),
        (
            {"REDIS_URL": "redis://127.0.0.1:1", "OPS_TOKEN": "t"},
            ("--host", "192.0.2.1"),
            1,
            "cannot listen on 192.0.2.1",
        ),
    ],
)
def test_refusals(
    tmp_path: Path, *, given: dict[str, str], arguments: tuple[str, ...], status: int, named: str
) -> None:
    """Without a password, a Redis or a usable address it ends at once and says which."""
    command = [sys.executable, "-m", "shared.dashboard", *arguments]
    env = child_environment(**given)
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, named in done.stderr) == (status, True), done.stderr
