"""`sume-jobs dev` as a newcomer uses it."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types
import pytest

from shared.config import child_environment
from shared.sandbox.ports import free_port
from shared.sandbox.process import Process, answers_ok

SUME_JOBS = str(Path(sys.executable).with_name("sume-jobs"))
WITHIN = timedelta(seconds=10)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A working directory that `nobody` can get into, as root's PostgreSQL must."""
    with tempfile.TemporaryDirectory(prefix="sume-jobs-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def dev(folder: Path) -> Iterator[Process]:
    """`sume-jobs dev`, once it is up."""
    env = child_environment(TMPDIR=str(folder))
    command = [SUME_JOBS, "dev", "--port", str(free_port()), "--dashboard-port", str(free_port())]
    with Process(command, name="dev", folder=folder, env=env) as process:
        process.wait_for_log("Ctrl-C stops everything")
        yield process
    (folder / "dev.log").unlink()


def lines_to_try(dev: Process) -> list[str]:
    """Return the shell lines that it printed."""
    printed = dev.log().partition("in this folder:\n")[2].partition("Ctrl-C")[0]
    return [line.strip() for line in printed.splitlines() if line.strip()]


def run(script: str, folder: Path) -> str:
    """Run a shell script in the folder as a person with an empty environment would, and return its output."""
    done = subprocess.run(
        ["/bin/sh", "-ec", script],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_session(dev: Process, folder: Path) -> None:
    """What is printed works as it stands; SIGTERM ends it all within 10 s with 0, and the files stay."""
    read_env, send, show, *more = lines_to_try(dev)
    assert run(f"{read_env}\n{send}", folder) == "204\n"
    dev.wait_for_log(r"job\.done .*job_id=job_first")
    assert re.search(r"state +done", run(f"{read_env}\n{show}", folder))
    rest = [line for line in more if not line.startswith("curl ")]
    assert "00-picture-0.png" in run("\n".join([read_env, *rest]), folder)
    dev.wait_for_log(r"job\.done .*job_id=job_lost")
    assert run(f"{read_env}\nsume-jobs send{send.partition('job_first')[2]}\nsume-jobs audit", folder).startswith("204")
    assert stat.S_IMODE((folder / ".dev" / "env").stat().st_mode) == 0o600
    [shown_at] = re.findall(r"rq-dashboard +(\S+)", dev.log())
    assert answers_ok(f"{shown_at}livez")
    assert dev.terminate(within=WITHIN) == 0
    picture = folder / ".dev" / "artifacts" / "job_first" / "00-picture-0.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert not (folder / ".dev" / "env").exists()
    assert not [p for p in psutil.process_iter(["cwd"]) if str(folder) in str(p.info["cwd"])]
    assert not list(folder.glob("sume-jobs-*"))


def test_a_death_is_told(dev: Process, folder: Path) -> None:
    """A process that is gone is said loudly, the rest goes on, and Ctrl-C still ends with 0.

    A second one in the same folder is refused meanwhile, and so is a port that is taken.
    """
    jobs = (folder / ".dev" / "artifacts").glob("job*")
    assert not list(jobs)  # what an earlier run left is gone, as is its database
    children = psutil.Process(dev.pid).children(recursive=True)
    [scheduler] = [child for child in children if child.cmdline()[-1:] == ["scheduler"]]
    scheduler.kill()
    dev.wait_for_log("scheduler DIED, exit status -9")
    assert dev.running
    second = subprocess.run([SUME_JOBS, "dev"], cwd=folder, capture_output=True, text=True, check=False, timeout=30)
    assert (second.returncode, "another sume-jobs dev runs here" in second.stderr) == (1, True)
    [taken] = re.findall(r"webhook +http://127\.0\.0\.1:(\d+)/", dev.log())
    command = [SUME_JOBS, "dev", "--port", taken]
    third = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=30)
    assert (third.returncode, f"error: port {taken} is taken\n" in third.stderr) == (1, True)
    assert dev.terminate(by=signal.SIGINT, within=WITHIN) == 0
    shutil.rmtree(folder / ".dev")
