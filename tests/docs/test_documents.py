"""The documents say what the code does."""

import ast
import re
from pathlib import Path

import pytest

from shared.claims.states import STATES, TRANSITIONS, Reason
from shared.config import Settings

ROOT = Path(__file__).parents[2]
SOURCES = [path for part in ("api", "worker", "scheduler", "shared") for path in (ROOT / part).rglob("*.py")]
TESTS = list((ROOT / "tests").rglob("*.py"))
TABLE_ROW = re.compile(r"^\| (\w+) \| (\w+) \| [^|]+ \|$", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("path", SOURCES + TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_owns_and_is_short(path: Path) -> None:
    """One sentence first, and no file so long that nobody reads it."""
    text = path.read_text()
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, "has no docstring"
    assert docstring.split("\n\n")[0].rstrip().endswith((".", "?")), "its first paragraph is no sentence"
    assert text.count("\n") <= (300 if path in TESTS else 250), "is too long"


def test_the_state_table_is_the_codes() -> None:
    """Every transition stands in ARCHITECTURE.md, and none that is not in the code."""
    rows = {(a, b) for a, b in TABLE_ROW.findall(read("ARCHITECTURE.md")) if a in STATES and b in STATES}
    assert rows == TRANSITIONS
    arrows = set(re.findall(r"^    (\w+) --> (\w+):", read("ARCHITECTURE.md"), re.MULTILINE))
    assert arrows == TRANSITIONS


def test_architecture_stays_readable() -> None:
    """Two hundred lines at most."""
    assert read("ARCHITECTURE.md").count("\n") <= 200


def shown(default: object) -> str:
    """Return a default as a person writes it into the environment."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(default) or "none"
    return "none" if default is None else str(default)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_stands_in_the_readme(name: str) -> None:
    """With its default, in the table of settings."""
    row = re.search(rf"^\| `{name.upper()}` \| (.+?) \| .+ \|$", read("README.md"), re.MULTILINE)
    assert row, f"{name.upper()} is not in README's table of settings"
    assert row[1].strip("`") == shown(Settings.model_fields[name].default)


def test_every_reason_stands_in_the_readme() -> None:
    """An operator can look up each reason a job may show."""
    readme = read("README.md")
    assert [reason for reason in Reason if f"`{reason.value}`" not in readme] == []


def test_every_file_the_documents_name_is_there() -> None:
    """Paths in backticks exist."""
    for document in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"):
        for path in re.findall(r"`((?:api|worker|scheduler|shared|tests)/[\w./]*)`", read(document)):
            assert (ROOT / path).exists(), f"{document} names {path}"
