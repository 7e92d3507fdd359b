"""The table and the JSON say what was measured."""

import json
from dataclasses import replace
from datetime import date, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.report import number, print_report, read_report
from tests.bench.row import Row, Target
from tests.bench.samples import DAY, FAR, MACHINE, MISSED, PLAIN, RATIO, report


@pytest.mark.parametrize(
    ("target", "met", "missed", "text"),
    [(Target(at_least=0.9), 0.9, 0.899, "≥ 0.9"), (Target(at_most=1.5), 1.5, 1.501, "≤ 1.5")],
)
def test_a_target_is_one_bound(target: Target, met: float, missed: float, text: str) -> None:
    assert (target.met_by(met), target.met_by(missed), str(target)) == (True, False, text)


@pytest.mark.parametrize("bounds", [{}, {"at_least": 1.0, "at_most": 2.0}])
def test_no_target_has_none_or_two(bounds: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="one bound"):
        Target(**bounds)


def test_the_median_is_what_is_judged() -> None:
    row = Row("x", Target(at_most=2), (1, 1.5, 9), 0, "s")
    assert (row.figure, row.met) == (1.5, True)


def printed(*rows: Row) -> list[str]:
    out = StringIO()
    print_report(report(*rows), Console(file=out))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_a_table_that_goes_into_a_file_is_plain() -> None:
    """No colours, no line that is cut, and why a target is missed below it."""
    lines = printed(RATIO, MISSED, PLAIN)
    assert "ours <a> & b | c 1.00 0.95 - 1.10 ≥ 0.9 met 1,200 / 1,150 jobs/s 3 of 4" in lines
    assert "idle memory 82.1 MB 80.0 - 84.2 ≤ 90 met 2 of 2" in lines
    missed = lines.index("slow / fast 0.50 0.50 - 0.50 ≥ 0.9 MISSED 50.0 / 100 jobs/s 1 of 1")
    assert lines[missed + 1] == "two cores are too few"
    assert not any("\x1b" in line for line in lines)


def test_a_note_is_about_a_miss() -> None:
    """Once the target is met nothing is to be explained."""
    assert "two cores are too few" not in printed(replace(MISSED, kept=(1.0,)))


def test_the_json_is_read_back_as_it_was(tmp_path: Path) -> None:
    """And says by itself what can be computed from it."""
    made = report(RATIO, MISSED, FAR, PLAIN)
    made.save(tmp_path / "bench.json")
    assert read_report(tmp_path / "bench.json") == made
    document = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert (document["date"], document["commit"], document["machine"]["cpu"]) == ("2026-01-02", "abc123", MACHINE.cpu)
    first = document["rows"][0]
    assert (first["figure"], first["from"], first["to"], first["met"]) == (1.0, 0.95, 1.1, True)
    assert (first["kept"], first["thrown_away"], first["ours"], first["limit"]) == ([0.95, 1.0, 1.1], 1, 1200, 1150)


def test_the_document_shows_everything_that_could_be_markup() -> None:
    lines = report(RATIO, MISSED).markdown().splitlines()
    assert lines[0].startswith("Measured 2026-01-02 on Example CPU 1, 2 cores, 8 GiB")
    assert lines[0].endswith("1 of 2 targets missed.")
    assert "| ours &lt;a> &amp; b \\| c | **1.00** | 0.95 - 1.10 | ≥ 0.9 | 1,200 / 1,150 jobs/s |" in lines
    assert (
        "| slow / fast<br>two cores are too few | **0.50** | 0.50 - 0.50 | ≥ 0.9, **missed** | 50.0 / 100 jobs/s |"
        in lines
    )


def test_what_was_not_measured_again_is_kept() -> None:
    """In the order of the benchmarks, with its day; what no longer is a benchmark goes."""
    order = ("receiver", "jobs")
    later = DAY + timedelta(days=1)
    old = replace(report(RATIO, PLAIN), entries=(*report(RATIO, PLAIN).entries, *report(FAR, benchmark="gone").entries))
    both = report(MISSED, benchmark="jobs", day=later).after(old, order=order)
    assert [row.name for row in both.rows] == [RATIO.name, PLAIN.name, MISSED.name]
    assert both.days == "2026-01-02 to 2026-01-03"
    again = report(FAR, day=date(2026, 1, 4)).after(both, order=order)
    assert [row.name for row in again.rows] == [FAR.name, MISSED.name]


def test_no_table_is_of_two_kinds_of_machines() -> None:
    other = replace(MACHINE, cores=64)
    with pytest.raises(ValueError, match="another machine"):
        report(RATIO, machine=other).after(report(PLAIN, benchmark="jobs"), order=("receiver", "jobs"))
    assert report(RATIO, machine=other).after(report(PLAIN), order=("receiver",)).machine == other
    newer = replace(MACHINE, kernel="Linux 7.0")
    assert report(RATIO, machine=newer).after(report(PLAIN, benchmark="jobs"), order=("receiver", "jobs")).rows


@pytest.mark.parametrize(
    ("value", "text"), [(0.987, "0.99"), (12.34, "12.3"), (123.4, "123"), (12_345.6, "12,346"), (0, "0.00")]
)
def test_figures_have_three_digits_or_more(value: float, text: str) -> None:
    assert number(value) == text
