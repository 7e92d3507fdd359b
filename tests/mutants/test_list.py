"""The list of mutants cannot rot: each edit fits the code as it is, each named test exists."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.__main__ import MUTANTS, ROOT
from tests.mutants.mutant import Mutant

CONFORMANCE = {"TestClaiming": "claiming", "TestLeasing": "leasing", "TestSweeping": "sweeping"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_every_edit_fits_once_and_names_tests_that_exist(mutant: Mutant, tmp_path: Path) -> None:
    """What is to be replaced stands there exactly once, and somebody is to notice."""
    source = ROOT / mutant.file
    copy = tmp_path / mutant.file
    copy.parent.mkdir(parents=True)
    copy.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    assert mutant.apply(tmp_path) == source.read_text(encoding="utf-8") != copy.read_text(encoding="utf-8")
    assert mutant.tests
    for test in mutant.tests:
        file, *inside, name = test.split("::")
        home = f"tests/conformance/{CONFORMANCE[inside[0]]}.py" if inside else file
        assert re.search(rf"^\s*def {name}\(", (ROOT / home).read_text(encoding="utf-8"), re.MULTILINE), test


def test_an_edit_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    """A mutant that changes nothing would survive, or worse, be thought killed."""
    (tmp_path / "code.py").write_text("x = 1\nx = 1\n")
    for old in ("x = 2", "x = 1"):
        with pytest.raises(ValueError, match=r"code\.py holds [02] times"):
            Mutant("claim", "something", "code.py", old, "", ()).apply(tmp_path)


def test_every_promise_is_broken_in_several_ways() -> None:
    """At least five edits for each of the four."""
    counts = Counter(mutant.promise for mutant in MUTANTS)
    assert set(counts) == {"claim", "lease", "publish", "signature"}
    assert min(counts.values()) >= 5
