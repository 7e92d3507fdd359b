"""The matrix says what was measured, of each fault by itself."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.fault import WORKER
from tests.chaos.judgements import Struck
from tests.chaos.matrix import BEGIN, END, FULL, SHORT, Matrix
from tests.chaos.run import Run
from tests.chaos.traffic import Answer


def run(*struck: Struck, answers: list[Answer], done_at: list[float]) -> Run:
    return Run(1, 2, struck=list(struck), answers=answers, done_at=done_at)


KILL = Struck("worker-1: SIGKILL", 100, 102)
TERM = Struck("worker-2: SIGTERM", 200, 202)
FROZEN = Struck("redis: frozen", 199, 260)
ANSWERS = [
    Answer("job_a", 100.5, 101, 204),
    Answer("job_b", 101, 101.5, 503),
    Answer("job_b", 102.5, 103.5, 204),
    Answer("job_c", 203, 204, 204),
]


def rows(table: str) -> list[str]:
    return table.splitlines()[2:]


def test_a_fault_is_measured_from_its_end_to_the_next_204_and_the_next_job_done() -> None:
    matrix = Matrix()
    matrix.add(run(KILL, answers=ANSWERS, done_at=[101.0, 105.25]))
    assert rows(matrix.table()) == ["| worker-1: SIGKILL | 1 | 204 50%, 503 50% | 1.5 s | 3.2 s |"]


def test_what_another_fault_explains_is_not_put_down_to_one() -> None:
    """It is counted, and no figure is taken from it; the api is away until it answers again."""
    matrix = Matrix()
    matrix.add(run(TERM, FROZEN, answers=ANSWERS, done_at=[201.0, 205.0]))
    assert rows(matrix.table()) == [
        "| redis: frozen | 1 | 204 100% | - | - |",
        "| worker-2: SIGTERM | 1 | - | 2.0 s | - |",
    ]
    killed = Struck("api: SIGKILL", 98, 99)
    silent = Answer("job_d", 99.5, 100, 0)
    matrix = Matrix()
    matrix.add(run(killed, replace(KILL, began=99.2), answers=[silent, *ANSWERS], done_at=[101.0]))
    assert rows(matrix.table()) == [
        "| api: SIGKILL | 1 | - | 2.0 s | - |",
        "| worker-1: SIGKILL | 1 | 503 100% | 1.5 s | - |",
    ]


def test_faults_of_one_kind_share_a_row_with_their_worst_times() -> None:
    matrix = Matrix()
    for n in (1, 2):
        struck = [KILL, TERM]
        matrix.add(run(*struck, answers=ANSWERS, done_at=[105.0, 202.0 + n]))
    assert rows(matrix.table(merged=True)) == [f"| {WORKER} | 4 | 204 50%, 503 50% | 2.0 s | 3.0 s |"]


def test_the_report_is_json(tmp_path: Path) -> None:
    matrix = Matrix()
    matrix.add(run(KILL, answers=ANSWERS, done_at=[105.0]))
    matrix.save(tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["faults"]["worker-1: SIGKILL"] == {
        "times": 1, "answers": {"204": 1, "503": 1}, "next_accepted_seconds": 1.5, "next_done_seconds": 3.0,
    }  # fmt: skip
    assert report["runs"][0]["seed"] == 1


def test_a_report_is_added_to(tmp_path: Path) -> None:
    """Runs on several machines or days make one matrix."""
    report = tmp_path / "report.json"
    first, second = Matrix(), Matrix()
    first.add(run(KILL, answers=ANSWERS, done_at=[105.0]))
    first.save(report)
    second.read(report)
    second.add(run(KILL, answers=ANSWERS, done_at=[107.0]))
    assert rows(second.table()) == ["| worker-1: SIGKILL | 2 | 204 50%, 503 50% | 1.5 s | 5.0 s |"]
    assert second.summary().startswith("2 seeds, 4 jobs, 8 deliveries, 2 faults")


def test_the_matrix_goes_between_the_markers_and_touches_nothing_else(tmp_path: Path) -> None:
    document = tmp_path / SHORT
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    (tmp_path / FULL).parent.mkdir(parents=True)
    matrix = Matrix()
    matrix.add(run(KILL, answers=ANSWERS, done_at=[105.0]))
    matrix.publish(tmp_path)
    text = document.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| fault |")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert WORKER in text
    assert "worker-1: SIGKILL" in (tmp_path / FULL).read_text()
    assert "1 seeds, 2 jobs" in (tmp_path / FULL).read_text()
    document.write_text("no markers")
    with pytest.raises(ValueError, match="no markers"):
        matrix.publish(tmp_path)
