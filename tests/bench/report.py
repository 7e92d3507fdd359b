"""All rows that were measured, on what and when: as a table for people and as JSON for the next run."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.table import Table

from shared.cli.tables import table
from shared.cli.terminal import UNBOUNDED_WIDTH, literal
from tests.bench.machine import Machine
from tests.bench.row import Row, Target

COLUMNS = ("what", "figure", "from - to", "target", "", "ours / limit", "kept")
MET, MISSED = "met", "MISSED"


@dataclass(frozen=True, slots=True)
class Entry:
    """A row, with the benchmark it is from and the day it was measured."""

    benchmark: str
    row: Row
    day: date


@dataclass(frozen=True, slots=True)
class Report:
    """Rows of one class of machine; `commit` is that of the newest."""

    machine: Machine
    commit: str | None
    entries: tuple[Entry, ...]

    @property
    def rows(self) -> Sequence[Row]:
        """All rows in order."""
        return [entry.row for entry in self.entries]

    @property
    def days(self) -> str:
        """When they were measured."""
        days = sorted({entry.day.isoformat() for entry in self.entries})
        return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else ""

    def after(self, earlier: "Report", *, order: Iterable[str]) -> Self:
        """Return this report with an earlier one's rows of all benchmarks that are not in this one.

        Raises ValueError where those are of another class of machine.
        """
        names = list(order)
        measured = {entry.benchmark for entry in self.entries}
        kept = [entry for entry in earlier.entries if entry.benchmark in names and entry.benchmark not in measured]
        if kept and earlier.machine.kind != self.machine.kind:
            raise ValueError(f"the rows to keep are of another machine ({earlier.machine.kind}); measure all of them")
        entries = sorted([*kept, *self.entries], key=lambda entry: names.index(entry.benchmark))
        return replace(self, entries=tuple(entries))

    def save(self, path: Path) -> None:
        """Write everything as JSON."""
        document = {
            "date": self.days,
            "commit": self.commit,
            "machine": asdict(self.machine),
            "rows": [entry_json(entry) for entry in self.entries],
        }
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def markdown(self) -> str:
        """Return the table for a document, with when and on what."""
        missed = sum(not row.met for row in self.rows)
        met = "every target is met" if not missed else f"{missed} of {len(self.rows)} targets missed"
        lines = [
            f"Measured {self.days} on {self.machine}; {met}.",
            "",
            "| | figure | from - to | target | ours / limit |",
            "|---|--:|--:|--:|--:|",
        ]
        for row in self.rows:
            name = escaped(row.name) + ("" if row.met or not row.note else f"<br>{escaped(row.note)}")
            target = f"{row.target}" if row.met else f"{row.target}, **missed**"
            lines.append(f"| {name} | **{shown(row)}** | {spread(row)} | {target} | {made_of(row)} |")
        return "\n".join(lines)


def read_report(path: Path) -> Report:
    """Return what an earlier `save` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Report(
        Machine(**document["machine"]),
        document["commit"],
        tuple(
            Entry(
                entry["benchmark"],
                Row(
                    entry["name"],
                    Target(**entry["target"]),
                    tuple(entry["kept"]),
                    entry["thrown_away"],
                    entry["unit"],
                    entry["ours"],
                    entry["limit"],
                    entry["note"],
                ),
                date.fromisoformat(entry["date"]),
            )
            for entry in document["rows"]
        ),
    )


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return a row with what can be computed from it too, for whoever reads the file without us."""
    row = entry.row
    return {
        "benchmark": entry.benchmark,
        "name": row.name,
        "date": entry.day.isoformat(),
        "figure": row.figure,
        "from": min(row.kept),
        "to": max(row.kept),
        "target": asdict(row.target),
        "met": row.met,
        "note": row.note,
        "unit": row.unit,
        "ours": row.ours,
        "limit": row.limit,
        "kept": list(row.kept),
        "thrown_away": row.discarded,
    }


def screen_table(rows: Collection[Row]) -> Table:
    """Return the table for a terminal."""
    made = table(*COLUMNS)
    for column in made.columns[1:]:
        column.no_wrap = True
        column.justify = "right"
    for row in rows:
        made.add_row(
            literal(row.name),
            literal(shown(row), "bold"),
            literal(spread(row)),
            literal(row.target),
            literal(MET, "green") if row.met else literal(MISSED, "bold red"),
            literal(made_of(row)),
            literal(f"{len(row.kept)} of {len(row.kept) + row.discarded}"),
        )
        if row.note and not row.met:
            made.add_row(literal(f"  {row.note}", "dim"))
    return made


def print_report(report: Report, where: Console) -> None:
    """Print the table; into a pipe or a file, lines as long as they come."""
    if not where.is_terminal:
        where.width = UNBOUNDED_WIDTH
    where.print(literal(f"{report.machine}; {report.days}"))
    where.print(screen_table(report.rows))


def shown(row: Row) -> str:
    """Return the figure; a ratio has no unit."""
    return number(row.figure) if row.limit is not None else f"{number(row.figure)} {row.unit}"


def spread(row: Row) -> str:
    """Return the smallest and the largest."""
    return f"{number(min(row.kept))} - {number(max(row.kept))}"


def made_of(row: Row) -> str:
    """Return what a ratio is made of."""
    return (
        f"{number(row.ours)} / {number(row.limit)} {row.unit}" if row.ours is not None and row.limit is not None else ""
    )


def number(value: float) -> str:
    """Return three or more digits, with a comma at each thousand."""
    return f"{value:,.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def escaped(text: str) -> str:
    """Return a text for a cell of Markdown."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
