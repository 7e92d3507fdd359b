"""The published crash matrix is whole."""

from pathlib import Path

from tests.chaos.matrix import BEGIN, END, FULL, SHORT
from tests.chaos.schedule import FAULTS

ROOT = Path(__file__).parents[2]


def shown(text: str) -> set[str]:
    """Return the first column of a table."""
    return {line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")} - {"fault"}


def test_the_published_matrix_shows_every_fault() -> None:
    """Each by itself in the whole matrix, each row of the catalogue in ARCHITECTURE.md, and no other."""
    assert shown((ROOT / FULL).read_text(encoding="utf-8")) == {fault.name for fault in FAULTS}
    short = (ROOT / SHORT).read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown(short) == {fault.row for fault in FAULTS}
