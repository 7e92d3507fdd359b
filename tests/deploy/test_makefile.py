"""Every target of the Makefile says what it does."""

import re
import subprocess

from tests.deploy.files import ROOT, read

TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)(.*)$", re.MULTILINE)


def test_every_target_has_a_help_text() -> None:
    """`make` alone lists each target with one line, and nothing else."""
    targets = dict(TARGET.findall(read("Makefile")))
    assert all(" ## " in rest for rest in targets.values())
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - whichever make there is
    listed = dict(re.findall(r"^  make ([a-z-]+) +(\S.*)$", done.stdout, re.MULTILINE))
    assert listed == {name: rest.partition(" ## ")[2] for name, rest in targets.items()}


def test_every_target_is_phony() -> None:
    """A file named as a target does not stop it."""
    [phony] = re.findall(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)
    assert set(phony.split()) == {name for name, _ in TARGET.findall(read("Makefile"))}


def test_the_targets_of_the_readme() -> None:
    """What a newcomer is told to type exists."""
    targets = {name for name, _ in TARGET.findall(read("Makefile"))}
    assert {"demo", "test", "dev", "check"} <= targets
    assert set(re.findall(r"\bmake ([a-z-]+)`", read("README.md"))) <= targets
