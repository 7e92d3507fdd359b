"""The published figures: results.json, the picture and README's table, which say the same."""

from pathlib import Path

from tests.bench.picture import draw
from tests.bench.report import Report

BEGIN, END = "<!-- benchmark: written by make bench -->", "<!-- end of the benchmark -->"
DOCUMENT, RESULTS, PICTURE = "README.md", "tests/bench/results.json", "tests/bench/results.svg"


def publish(report: Report, checkout: Path) -> None:
    """Write all three; raises ValueError, and writes nothing, where the document has no markers."""
    document = checkout / DOCUMENT
    text = with_table(document.read_text(encoding="utf-8"), report)
    report.save(checkout / RESULTS)
    (checkout / PICTURE).write_text(draw(report), encoding="utf-8")
    document.write_text(text, encoding="utf-8")


def with_table(text: str, report: Report) -> str:
    """Return the document with the table between its markers, everything else as it was."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT} has no markers of the benchmark")
    return f"{head}{BEGIN}\n{report.markdown()}\n{END}{tail}"
