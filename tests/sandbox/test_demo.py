"""The demo as a user runs it: `sume-jobs demo` with real servers and processes."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types
import pytest

from shared.config import child_environment
from shared.sandbox.process import Process

COMMAND = [str(Path(sys.executable).with_name("sume-jobs")), "demo"]
SECONDS_ALLOWED = 60


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for temporary files that `nobody` can get into, as root's PostgreSQL must; pytest's own is closed."""
    with tempfile.TemporaryDirectory(prefix="sume-jobs-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def left_running(scratch: Path) -> list[int]:
    """Return the processes that work in the scratch folder."""
    return [process.pid for process in psutil.process_iter(["cwd"]) if str(scratch) in str(process.info["cwd"])]


def test_every_story_ends_as_it_must(tmp_path: Path, scratch: Path) -> None:
    """The demo exits with 0 within a minute, its JSON has the five stories, and it leaves nothing behind.

    A setting of the developer that would break everything is not read, from the environment or from `.env`.
    """
    (tmp_path / ".env").write_text("ARTIFACT_HOSTS=elsewhere.example\nMAX_ATTEMPTS=none\n", encoding="utf-8")
    env = child_environment(TMPDIR=str(scratch), DATABASE_URL="postgresql://nowhere.invalid/none")
    done = subprocess.run(
        [*COMMAND, "--json"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_ALLOWED,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["ok"]
    assert result["audit"] == {"ok": True, "checked": 5, "problems": []}
    found = [
        (story["story"], story["deliveries"], story["attempts"], len(story["files"])) for story in result["stories"]
    ]
    assert found == [
        ("completed", 1, 1, 2),
        ("failed", 1, 1, 0),
        ("delivered three times at once", 3, 1, 1),
        ("webhook never came", 0, 1, 1),
        ("worker killed in mid-download", 1, 2, 1),
    ]
    assert "[8/8] stopping everything" in done.stderr
    assert (list(scratch.iterdir()), left_running(scratch)) == ([], [])


def test_an_interrupted_demo_stops_everything(tmp_path: Path, scratch: Path) -> None:
    """Ctrl-C in the middle ends it with a status of its own and leaves no process and no folder."""
    env = child_environment(TMPDIR=str(scratch))
    with Process(COMMAND, name="demo", folder=tmp_path, env=env) as demo:
        demo.wait_for_log(r"\[2/8\]")
        assert left_running(scratch)
        assert demo.terminate(by=signal.SIGINT) == 130
        assert "interrupted" in demo.log()
    assert (list(scratch.iterdir()), left_running(scratch)) == ([], [])
