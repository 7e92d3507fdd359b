"""Nothing we started outlives us, however we end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shared.config import child_environment
from tests.sandbox.watch import alive, eventually

PARENT = """
import json, sys, threading, time
from pathlib import Path
from shared.config import child_environment
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import Process
from shared.sandbox.valkey import Valkey

started = [Postgres(), Valkey()]
starter = threading.Thread(target=lambda: [server.start() for server in started])
starter.start()
starter.join()
if {paused}:
    [server.pause() for server in started]
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
sleeper = Process([sys.executable, "-c", code], name="sleeper", folder=Path.cwd(), env=child_environment()).start()
folders = [str(server.process.log_path.parent) for server in started]
print(json.dumps([[server.process.pid for server in started] + [sleeper.pid], folders]), flush=True)
time.sleep(60)
"""


@pytest.mark.usefixtures("postgres", "valkey")  # they skip or fail where the wheels are missing
@pytest.mark.parametrize("paused", [False, True])
def test_children_end_with_a_killed_parent(tmp_path: Path, *, paused: bool) -> None:
    """SIGKILL of the parent's whole group ends PostgreSQL, Valkey and our own processes.

    Frozen ones and those that ignore signals too, though the thread that started them had ended long before. Their
    folders go as well, and the shared memory that a killed PostgreSQL would leave.
    """
    code = PARENT.replace("{paused}", str(paused))
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=child_environment(),
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        pids, folders = json.loads(parent.stdout.readline())
        assert all(alive(pid) for pid in pids)
        assert shared_memory_of(pids[0]) or not Path("/proc/sysvipc/shm").exists()
        os.killpg(parent.pid, signal.SIGKILL)
    assert eventually(lambda: not any(alive(pid) for pid in pids), within=40)
    assert eventually(lambda: not any(Path(folder).exists() for folder in folders), within=40)
    assert not shared_memory_of(pids[0])


def shared_memory_of(pid: int) -> list[str]:
    """Return the System V segments that a process made, as Linux lists them."""
    segments = Path("/proc/sysvipc/shm")
    lines = segments.read_text(encoding="ascii").splitlines() if segments.exists() else []
    return [line for line in lines if str(pid) in line.split()]
