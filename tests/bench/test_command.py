"""The command tells everything that could be measured, and what could not."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench import __main__ as command
from tests.bench.bench import Bench
from tests.bench.machine import version_in
from tests.bench.publish import BEGIN, DOCUMENT, END, PICTURE, RESULTS
from tests.bench.row import Row
from tests.bench.samples import PLAIN, RATIO


def good(bench: Bench) -> Iterator[Row]:
    """Measure."""
    bench.say(f"{bench.pairs} pairs")
    yield RATIO


def other(_bench: Bench) -> Iterator[Row]:
    """Measure something else."""
    yield PLAIN


def wrong(_bench: Bench) -> Iterator[Row]:
    """Measure, and find wrong work."""
    yield PLAIN
    raise RuntimeError("3 jobs are missing\nand more")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that is the working directory, with benchmarks of the test's own."""
    for name, measure in (("good", good), ("other", other), ("wrong", wrong)):
        monkeypatch.setitem(sys.modules, f"tests.bench.{name}", SimpleNamespace(measure=measure))
    monkeypatch.setitem(sys.modules, "tests.bench.broken", None)
    monkeypatch.setattr(command, "BENCHMARKS", ("good", "other", "wrong", "broken"))
    (tmp_path / RESULTS).parent.mkdir(parents=True)
    (tmp_path / DOCUMENT).write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: Path) -> list[Any]:
    return [row["name"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def test_the_figures_are_printed_and_kept_here(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is all that goes to stdout; whatever the figures are, the exit status is 0."""
    assert command.main(["good", "--pairs", "2"]) == 0
    out, err = capsys.readouterr()
    assert RATIO.name in out
    assert "2 pairs" in err
    assert rows(here / "bench.json") == [RATIO.name]
    assert (here / "bench.svg").exists()
    assert not (here / RESULTS).exists()


def test_one_that_does_not_work_is_one_line_and_exit_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are measured; of wrong work no row is told."""
    assert command.main([]) == 1
    wrong_line, broken_line = capsys.readouterr().err.splitlines()[-2:]
    assert wrong_line == "wrong was not measured: 3 jobs are missing"
    assert broken_line.startswith("broken was not measured: ModuleNotFoundError: ")
    assert rows(here / "bench.json") == [RATIO.name, PLAIN.name]
    assert command.main(["wrong"]) == 1


def test_publishing_some_keeps_the_others(here: Path) -> None:
    assert command.main(["other", "--publish"]) == 0
    assert command.main(["good", "--publish"]) == 0
    assert rows(here / RESULTS) == [RATIO.name, PLAIN.name]
    assert (here / PICTURE).exists()
    assert not (here / "bench.json").exists()
    assert PLAIN.name in (here / DOCUMENT).read_text(encoding="utf-8")


def test_what_cannot_be_published_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / DOCUMENT).write_text("no markers", encoding="utf-8")
    assert command.main(["good", "--publish"]) == 1
    assert capsys.readouterr().err.endswith("not written: README.md has no markers of the benchmark\n")


@pytest.mark.parametrize("arguments", [["nonsense"], ["good", "--pairs", "0"], ["--pairs", "x"]])
@pytest.mark.usefixtures("here")
def test_wrong_usage_is_exit_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2


def test_a_version_names_no_build_and_no_host() -> None:
    assert version_in("postgres (PostgreSQL) 18.6 (somebody@example)") == "18.6"
    assert version_in("6.1.0-18-cloud-amd64") == "6.1.0"
    assert version_in("nothing") == "unknown"
