"""A story that does not end as it must is seen, and makes the demo fail."""

import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from shared.audit import Audit, Problem
from shared.claims.records import JobRecord
from shared.cli.demo_report import present, story_table
from shared.clock import now
from shared.event import StoredArtifact
from shared.sandbox.stories.demo import Result, Verdict, play
from shared.sandbox.stories.story import Ending, Story, file_problems, row_problems
from shared.sandbox.stories.told import STORIES
from shared.sandbox.sume import Content, File
from shared.sandbox.system import System

CONTENT = Content(b"bytes of a picture")
FILE = File("/demo/picture.png", CONTENT, "http://127.0.0.1:1")
ARTIFACT = StoredArtifact(0, "job_a/00-picture.png", CONTENT.size, CONTENT.sha256)
JOB = JobRecord(
    job_id="job_a",
    state="done",
    event="job.completed",
    status="OK",
    deliveries=1,
    attempts=1,
    source="webhook",
    conflict=False,
    conflict_with=None,
    error=None,
    reason=None,
    status_url=None,
    first_seen=now(),
    last_seen=now(),
    updated_at=now(),
    next_look_at=None,
    acknowledged_at=None,
    pruned_at=None,
    artifacts=(ARTIFACT,),
)


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """A storage that holds the job's file and manifest."""
    folder = tmp_path / "job_a"
    folder.mkdir()
    (folder / "00-picture.png").write_bytes(b"bytes of a picture")
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    return tmp_path


def test_whole_files_are_no_problem(storage: Path) -> None:
    """What is recorded, on disk and hosted is the same."""
    assert file_problems(storage, JOB, [FILE]) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "00-picture.png").write_bytes(b"Bytes of a picture"),
        lambda folder: (folder / "00-picture.png").write_bytes(b"bytes of a pict"),
        lambda folder: (folder / "00-picture.png").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "01-second.png").write_bytes(b"too many"),
    ],
    ids=["changed", "short", "missing", "no manifest", "too many"],
)
def test_a_spoiled_folder_is_a_problem(storage: Path, spoil: Callable[[Path], object]) -> None:
    """A file that is changed, short, missing or too many is seen, a missing manifest too."""
    spoil(storage / "job_a")
    assert file_problems(storage, JOB, [FILE]) != []


def test_a_wrong_record_is_a_problem(storage: Path) -> None:
    """A record without the file, or of another file, is seen."""
    assert file_problems(storage, replace(JOB, artifacts=()), [FILE]) != []
    assert file_problems(storage, replace(JOB, artifacts=(replace(ARTIFACT, sha256="0" * 64),)), [FILE]) != []
    assert file_problems(storage, JOB, []) != []


def test_each_column_counts() -> None:
    """Every column that is not as wanted is named."""
    problems = row_problems(JOB, state="done", deliveries=3, attempts=2)
    assert problems == ["deliveries: 1 instead of 3", "attempts: 1 instead of 2"]


def test_a_broken_story_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """A worker that refuses the files (here: too large) leads to exit status 1 and the end of its log.

    With `keep` files and logs stay, in a folder that is named.
    """
    told: list[str] = []
    result = play(keep=True, stories=STORIES[:1], settings={"ARTIFACT_MAX_BYTES": "1000"}, tell=told.append)
    assert result.kept is not None
    assert {path.name for path in result.kept.iterdir()} >= {"api.log", "worker-1.log", "scheduler.log"}
    shutil.rmtree(result.kept)
    assert present(result, json=False) == 1
    shown = capsys.readouterr()
    assert "WRONG" in shown.out
    assert "state: 'dead' instead of 'done'" in shown.err
    assert "too_large" in shown.err
    assert str(result.kept) in shown.out
    assert told[0].startswith("starting")


def test_a_story_without_an_end_fails_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """An error inside a story is that story's problem; the others are still told."""

    def dies(system: System) -> Ending:
        system.processes["worker-1"].kill()
        system.processes["worker-2"].wait_for(lambda: False, what="a miracle", within=system.settings.seconds("lease"))
        raise AssertionError

    result = play(stories=[Story("hopeless", "worker", dies), STORIES[1]])
    assert [verdict.ok for verdict in result.verdicts] == [False, True]
    assert present(result, json=True) == 1
    assert "did not come to a miracle" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (Result([Verdict("a", "fine", 0.1, JOB)], Audit(1, ())), 0),
        (Result([Verdict("a", "odd", 0.1, JOB, ("attempts: 2 instead of 1",))], Audit(1, ())), 1),
        (Result([Verdict("a", "fine", 0.1, JOB)], Audit(1, (Problem("job_a", "job_a/x", "missing"),))), 1),
        (Result([Verdict("a", "fine", 0.1, JOB)], None), 1),
    ],
)
def test_the_exit_status(result: Result, status: int) -> None:
    """Success is every story as it must be and a clean audit, nothing less."""
    assert present(result, json=False) == status


@pytest.mark.parametrize("width", [50, 80, 129, 130, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    """Whatever the width, every figure can be read and no word is cut."""
    screen = Console(width=width, record=True, file=io.StringIO())
    verdict = Verdict("worker killed in mid-download", "worker-1 killed; worker-2 finished it", 4.9, JOB)
    screen.print(story_table([verdict, Verdict("failed", "no end", 20.0, None, ("late",))], width=width))
    shown = screen.export_text()
    assert max(map(len, shown.splitlines())) <= width
    assert {"mid-download", "finished", "deliveries", "attempts", "4.9", "WRONG"} <= set(shown.split())
