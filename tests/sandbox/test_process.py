"""A process of our own: its environment, its end, and what is waited for."""

import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from shared.config import child_environment
from shared.sandbox.ports import free_port
from shared.sandbox.process import Process, python_module
from shared.sandbox.wheels import SandboxError
from tests.sandbox.watch import alive, eventually, stopped

BRIEF = timedelta(milliseconds=200)
WAIT = "import time; print('ready', flush=True); time.sleep(60)"
POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print('ready', flush=True)
time.sleep(60)
"""
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)
print('ready', child.pid, flush=True)
time.sleep(60)
"""


def process(folder: Path, code: str, **env: str) -> Process:
    """Return a process that runs some Python."""
    return Process([sys.executable, "-c", code], name="probe", folder=folder, env=child_environment(**env))


def test_environment_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child sees none of the developer's settings but those it is given, and none of their `.env`."""
    monkeypatch.setenv("QUEUE_NAME", "the-developers")
    monkeypatch.setenv("SUME_API_KEY", "the-developers")
    code = "import os; print(sorted(os.environ.items()), os.getcwd())"
    with process(tmp_path, code, QUEUE_NAME="ours") as probe:
        assert probe.wait() == 0
    assert "the-developers" not in probe.log()
    assert "('QUEUE_NAME', 'ours')" in probe.log()
    assert "('PATH'," in probe.log()
    assert str(tmp_path) in probe.log()


def test_our_programs_are_found_from_any_folder(tmp_path: Path) -> None:
    """`python -m` finds our packages though the child runs in a scratch folder."""
    command = python_module("timeit", "-n1", "-r1", "import shared.config")
    with Process(command, name="probe", folder=tmp_path, env=child_environment()) as probe:
        assert probe.wait() == 0, probe.log()


def test_terminate_returns_the_exit_code(tmp_path: Path) -> None:
    """A process asked to stop says how it ended, paused or not."""
    with process(tmp_path, POLITE) as probe:
        probe.wait_for_log("ready")
        probe.pause()
        assert probe.terminate() == 7
        assert probe.exit_code == 7


def test_terminate_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A process that ignores the request is reported with its log."""
    with process(tmp_path, "import signal; signal.signal(15, signal.SIG_IGN);" + WAIT) as probe:
        probe.wait_for_log("ready")
        with pytest.raises(SandboxError, match=r"did not end within 0\.2 s\nready"):
            probe.terminate(within=BRIEF)


def test_kill_takes_the_whole_family(tmp_path: Path) -> None:
    """A kill reaches children that moved to a session of their own, and a pause freezes them."""
    with process(tmp_path, FAMILY) as probe:
        probe.wait_for_log(r"ready \d+\n")
        child = int(probe.log().split()[1])
        probe.pause()
        assert stopped(child)
        probe.resume()
        assert not stopped(child)
        probe.kill()
        assert probe.exit_code == -signal.SIGKILL
        assert eventually(lambda: not alive(child))


def test_signal_reaches_the_process_alone(tmp_path: Path) -> None:
    """A signal can be sent to the parent without its children, as an operator's `kill` would."""
    with process(tmp_path, FAMILY) as probe:
        probe.wait_for_log(r"ready \d+\n")
        child = int(probe.log().split()[1])
        probe.pause()
        probe.send(signal.SIGCONT)
        assert eventually(lambda: not stopped(probe.pid))
        assert stopped(child)


def test_start_again(tmp_path: Path) -> None:
    """An ended process can be started again, and its log goes on."""
    probe = process(tmp_path, WAIT).start()
    probe.wait_for_log("ready")
    with pytest.raises(SandboxError, match="runs already"):
        probe.start()
    probe.kill()
    with probe:
        probe.wait_for_log("ready", times=2)


def test_early_end_is_reported_with_the_log(tmp_path: Path) -> None:
    """Waiting ends at once when the process has, and tells what it said."""
    with process(tmp_path, "raise SystemExit('no secret set')") as probe, pytest.raises(SandboxError) as caught:
        probe.wait_for_log("ready")
    assert str(caught.value) == "probe ended with 1 before log 'ready'\nno secret set"


def test_wait_has_a_deadline(tmp_path: Path) -> None:
    """What does not happen in time is an error."""
    with process(tmp_path, WAIT) as probe, pytest.raises(SandboxError, match="did not come to"):
        probe.wait_for_log("never", within=BRIEF)


def test_wait_for_http(tmp_path: Path) -> None:
    """A process that serves HTTP is ready when it answers 200."""
    port = free_port()
    command = python_module("http.server", "--bind", "127.0.0.1", str(port))
    with Process(command, name="probe", folder=tmp_path, env=child_environment()) as probe:
        with pytest.raises(SandboxError, match="did not come to answer"):
            probe.wait_for_http(f"http://127.0.0.1:{port}/missing", within=timedelta(seconds=1))
        probe.wait_for_http(f"http://127.0.0.1:{port}/")


def test_missing_program(tmp_path: Path) -> None:
    """A command that is not there is said to be."""
    with pytest.raises(SandboxError, match="cannot be started: No such file"):
        Process(["/no/such/program"], name="probe", folder=tmp_path, env={}).start()


def test_ports_are_below_the_ephemeral_range() -> None:
    """A port is never one that the system gives to an outgoing connection."""
    assert all(15_000 <= free_port() < 30_000 for _ in range(20))
