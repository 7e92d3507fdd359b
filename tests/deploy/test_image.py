"""The Dockerfile fits the project; it is read, not built."""

import tomllib

import pytest

from tests.deploy.files import ROOT, instructions, read

PARTS = {"api", "scheduler", "shared", "worker"}


def test_what_is_copied_is_there_and_not_ignored() -> None:
    """Each source of a COPY exists and .dockerignore lets it through, and nothing else."""
    copied = set()
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            copied |= set(sources)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    rules = [line for line in read(".dockerignore").splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == copied


def test_the_image_holds_every_package_of_ours() -> None:
    """What the wheel is made of is copied."""
    project = tomllib.loads(read("pyproject.toml"))
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == PARTS
    assert {rest.split()[0] for word, rest in instructions() if word == "COPY"} >= PARTS | {"pyproject.toml"}


def test_versions_are_those_of_the_lock_file() -> None:
    """Wheels are fetched once, by hash, and every install after that knows no index."""
    runs = [rest for word, rest in instructions() if word == "RUN"]
    steps = [step.strip() for run in runs for step in run.split("&&")]
    [download] = [step for step in steps if "pip download" in step]
    assert "--require-hashes" in download
    assert "requirements.lock" in download
    others = [step for step in steps if step.startswith("pip ") and step != download]
    assert len(others) == 3
    assert all("--no-index" in step for step in others)


def test_only_what_production_needs_is_installed() -> None:
    """The last stage takes the dashboard's extra, neither the sandbox's nor the tools'."""
    [install] = [
        step
        for word, rest in instructions()
        if word == "RUN"
        for step in rest.split("&&")
        if "/opt/sume-jobs/bin/python install" in step
    ]
    assert "sume-jobs[dashboard]" in install


@pytest.mark.parametrize(
    "wanted",
    [
        ("USER", "10001:10001"),
        ("STOPSIGNAL", "SIGTERM"),
        ("WORKDIR", "/data"),
        ("ENTRYPOINT", '["sume-jobs"]'),
        ("CMD", '["--help"]'),
    ],
)
def test_how_it_runs(wanted: tuple[str, str]) -> None:
    """As a user of its own, stopped by SIGTERM, without any `.env`, as our console script."""
    last = max(index for index, (word, _) in enumerate(instructions()) if word == "FROM")
    assert wanted in instructions()[last:]


def test_the_environment_of_the_image() -> None:
    """Output is not held back, and files go to the volume."""
    text = " ".join(rest for word, rest in instructions() if word == "ENV")
    assert "PYTHONUNBUFFERED=1" in text
    assert "STORAGE_URL=file:///data/artifacts" in text


def test_both_stages_are_one_python() -> None:
    """The environment made in the first stage works in the second, and our metadata allows its version."""
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert bases == ["python:3.13-slim"] * 2
