"""The reckoning notices each way in which a promise can be broken."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared import clock
from shared.claims.records import JobRecord
from shared.event import StoredArtifact
from tests.chaos.jobs import PlannedFile, PlannedJob
from tests.chaos.judgements import Struck, answer_problems, file_problems, log_problems, row_problems
from tests.chaos.traffic import Answer
from tests.chaos.witness import Witness

JOB = PlannedJob("job_demo", "plain", (PlannedFile("a.png", 900, 1), PlannedFile("b.png", 700, 2)))
POISON = PlannedJob("job_poison", "poison")


@pytest.fixture
def record() -> JobRecord:
    """The row of JOB as it must end."""
    stored = [
        StoredArtifact(n, f"job_demo/{n:02}-{file.name}", file.size, file.content.sha256)
        for n, file in enumerate(JOB.files)
    ]
    now = clock.now()
    return JobRecord(
        job_id="job_demo", state="done", event="job.completed", status="OK", deliveries=2, attempts=1,
        source="webhook", conflict=False, conflict_with=None, error=None, reason=None, status_url=None,
        first_seen=now, last_seen=now, updated_at=now, next_look_at=None, acknowledged_at=None, pruned_at=None,
        artifacts=tuple(stored),
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of JOB as it must be."""
    folder = tmp_path / "job_demo"
    folder.mkdir()
    for n, file in enumerate(JOB.files):
        (folder / f"{n:02}-{file.name}").write_bytes(b"".join(file.content.chunks(0, file.size)))
    (folder / "manifest.json").write_text("{}")
    return folder


def call(folder: Path) -> dict[str, Any]:
    """Return what the handler notes of the folder as it is now."""
    return {
        "files": [
            [path.name, path.stat().st_ino, file.content.sha256]
            for path, file in zip(sorted(folder.glob("0*")), JOB.files, strict=True)
        ]
    }


def test_what_is_as_it_must_be_is_no_problem(record: JobRecord, folder: Path) -> None:
    assert list(row_problems(JOB, record, accepted=2, tried=3)) == []
    assert list(file_problems(folder.parent, JOB, record, calls=[call(folder)] * 2)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": "claimed"},
        {"state": "dead", "reason": "worker_lost"},
        {"event": "job.failed"},
        {"deliveries": 1},
        {"deliveries": 4},
    ],
)
def test_a_wrong_row_is_noticed(record: JobRecord, wrong: dict[str, Any]) -> None:
    """A lost job, a death without cause, another event, a delivery not counted or counted twice."""
    assert len(list(row_problems(JOB, replace(record, **wrong), accepted=2, tried=3))) == 1


def test_a_job_that_kills_its_worker_must_be_dead_and_say_why(record: JobRecord) -> None:
    assert list(row_problems(POISON, record, accepted=2, tried=2))
    assert list(row_problems(POISON, replace(record, state="dead", reason="timed_out"), accepted=2, tried=2))
    assert not list(row_problems(POISON, replace(record, state="dead", reason="worker_lost"), accepted=2, tried=2))


def lose(folder: Path) -> None:
    (folder / "00-a.png").unlink()


def damage(folder: Path) -> None:
    (folder / "00-a.png").write_bytes(b"x" * 900)


def add(folder: Path) -> None:
    (folder / "02-c.png").write_bytes(b"x")


def forget_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def publish_again(folder: Path) -> None:
    again = folder / "again"
    again.write_bytes((folder / "00-a.png").read_bytes())
    again.replace(folder / "00-a.png")


@pytest.mark.parametrize("harm", [lose, damage, add, forget_manifest, publish_again])
def test_a_file_that_is_not_as_it_was_published_is_noticed(
    record: JobRecord, folder: Path, harm: Callable[[Path], None]
) -> None:
    """Lost, damaged, doubled, undescribed, or replaced by an equal one."""
    calls = [call(folder)]
    harm(folder)
    assert list(file_problems(folder.parent, JOB, record, calls=calls))


def test_a_job_done_without_its_handler_is_noticed(record: JobRecord, folder: Path) -> None:
    assert list(file_problems(folder.parent, JOB, record, calls=[])) == ["done without one call of its handler"]


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ('{"event": "job.done", "job_id": "job_demo"}', 2),
        ('{"event": "artifact.published", "path": "job_demo/00-a.png"}', 2),
        ('{"event": "duty.crashed", "level": "error"}', 1),
        ("Traceback (most recent call last):", 1),
    ],
)
def test_logs_that_tell_of_a_defect_are_noticed(line: str, times: int) -> None:
    """Something done twice, an error no fault causes, a line that is no log line."""
    fine = '{"event": "worker.ended", "level": "error"}'
    assert list(log_problems("\n".join([fine] * 3 + [line] * (times - 1)))) == []
    assert len(list(log_problems("\n".join([line] * times)))) == 1


@pytest.mark.parametrize(
    ("code", "fault", "explained"),
    [
        (204, None, True),
        (503, None, True),
        (500, "api: SIGKILL", False),
        (0, "postgres: frozen", False),
        (0, "api: SIGKILL", True),
        (401, "api: SIGKILL", False),
        (401, "api: clock +1 h", True),
        (408, "api: SIGSTOP", True),
    ],
)
def test_an_answer_needs_a_fault_that_explains_it(code: int, fault: str | None, explained: bool) -> None:  # noqa: FBT001 - a table
    """Whatever happens to servers and workers, a receiver that runs answers 204 or 503."""
    struck = [Struck(fault, 100, 102)] if fault else []
    during, later = Answer("job_demo", 101, 101.5, code), Answer("job_demo", 120, 121, code)
    again = Answer("job_other", 110, 111, 204)
    assert (not list(answer_problems([during, again], struck))) == explained
    assert (not list(answer_problems([again, later], struck))) == (code in {204, 503})


def test_a_fault_of_the_api_that_nobody_was_answered_after_explains_silence() -> None:
    """It may be the last of a run."""
    assert list(answer_problems([Answer("job_demo", 101, 101.5, 0)], [Struck("api: SIGKILL", 100, 102)])) == []


def test_the_witness_sees_what_is_partial_replaced_or_removed(folder: Path) -> None:
    """And a manifest that is written anew does not trouble it."""
    witness = Witness(folder.parent, [JOB])
    assert list(witness.look()) == []
    (folder / "manifest.json").write_text("{ }")
    assert list(witness.look()) == []
    publish_again(folder)
    assert list(witness.look()) == ["job_demo/00-a.png was replaced after it was published"]
    lose(folder)
    assert list(witness.look()) == ["job_demo/00-a.png was removed after it was published"]
    os.truncate(folder / "01-b.png", 10)
    assert list(witness.look()) == ["job_demo/01-b.png was visible with 10 bytes"]


def test_films_are_slow_enough_to_be_cut_in_their_middle() -> None:
    from tests.chaos.jobs import DRIP_BYTES, DRIP_WAIT, FILM_BYTES  # noqa: PLC0415 - of this test alone

    assert timedelta(seconds=1) < DRIP_WAIT * (FILM_BYTES / DRIP_BYTES)
