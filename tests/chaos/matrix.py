"""The crash matrix: what each fault did to deliveries and jobs, summed over runs, as a table and as JSON."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.judgements import Struck, prolonged
from tests.chaos.run import Run
from tests.chaos.schedule import FAULTS

BEGIN, END = "<!-- crash matrix: written by make chaos -->", "<!-- end of the crash matrix -->"


ROW_OF = {fault.name: fault.row for fault in FAULTS}
ANSWERING = ("api: ", "postgres: ")
"""Faults of what answers a delivery. Those of all else change no answer, as their own rows show."""
SHORT, FULL = "ARCHITECTURE.md", "tests/chaos/MATRIX.md"


@dataclass(slots=True)
class Row:
    """One fault, or several that share a row, over all runs; times in seconds, None where nothing was measured."""

    times: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """What deliveries were answered while it lasted and no other fault explains it."""
    next_accepted: float | None = None
    """The longest from its end to the first 204 of a delivery begun since, no other fault explaining it."""
    next_done: float | None = None
    """The same to the next job done."""

    def merge(self, other: "Row") -> None:
        """Add what another row measured."""
        self.times += other.times
        self.answers.update(other.answers)
        self.next_accepted = longest(self.next_accepted, other.next_accepted)
        self.next_done = longest(self.next_done, other.next_done)


def longest(one: float | None, other: float | None) -> float | None:
    """Return the larger of two times, of which either may not have been measured."""
    return max((seconds for seconds in (one, other) if seconds is not None), default=None)


class Matrix:
    """Collects runs."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._runs: list[dict[str, float]] = []
        self._skipped: dict[str, str] = {}

    def add(self, run: Run) -> None:
        """Add what one run measured."""
        for struck in run.struck:
            self._rows.setdefault(struck.name, Row()).merge(measure(struck, run))
        self._skipped |= run.skipped
        self._runs.append(
            {
                "seed": run.seed,
                "jobs": run.jobs,
                "done": len(run.done_at),
                "deliveries": len(run.answers),
                "faults": len(run.struck),
                "handler_calls": run.handled,
                "seconds": round(run.seconds, 1),
                "calm_seconds": round(run.calm_seconds, 1),
                "problems": len(run.problems),
            }
        )

    def summary(self) -> str:
        """Return the sums of all runs in one line."""
        sums: Counter[str] = Counter()
        for run in self._runs:
            sums.update({name: int(run[name]) for name in ("jobs", "deliveries", "faults")})
        slowest = max(run["calm_seconds"] for run in self._runs)
        return (
            f"{len(self._runs)} seeds, {sums['jobs']} jobs, {sums['deliveries']} deliveries, {sums['faults']} faults; "
            f"all jobs had ended at most {slowest:.0f} s after the last fault"
        )

    def table(self, *, merged: bool = False) -> str:
        """Return the matrix as a Markdown table; merged, faults of one kind share a row."""
        rows: dict[str, Row] = {}
        for name, row in sorted(self._rows.items()):
            rows.setdefault(ROW_OF[name] if merged else name, Row()).merge(row)
        lines = ["| fault | times | deliveries meanwhile | next 204 | next job done |", "|---|--:|---|--:|--:|"]
        for name, row in rows.items():
            figures = f"{seconds(row.next_accepted)} | {seconds(row.next_done)}"
            lines.append(f"| {name} | {row.times} | {shares(row.answers)} | {figures} |")
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write everything as JSON."""
        faults = {
            name: {
                "times": row.times,
                "answers": dict(row.answers.most_common()),
                "next_accepted_seconds": row.next_accepted,
                "next_done_seconds": row.next_done,
            }
            for name, row in sorted(self._rows.items())
        }
        document: Mapping[str, object] = {"runs": self._runs, "faults": faults, "skipped": self._skipped}
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def read(self, path: Path) -> None:
        """Add what an earlier `save` wrote."""
        document = json.loads(path.read_text(encoding="utf-8"))
        self._runs += document["runs"]
        self._skipped |= document["skipped"]
        for name, fault in document["faults"].items():
            figures = (fault["next_accepted_seconds"], fault["next_done_seconds"])
            self._rows.setdefault(name, Row()).merge(Row(fault["times"], Counter(fault["answers"]), *figures))

    def publish(self, folder: Path) -> None:
        """Write the whole matrix, and the short one between the markers of ARCHITECTURE.md, into a checkout."""
        summary = f"{self.summary()[0].upper()}{self.summary()[1:]}."
        (folder / FULL).write_text(f"# The whole crash matrix\n\n{summary}\n\n{self.table()}\n", encoding="utf-8")
        document = folder / SHORT
        head, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
        _, end, tail = rest.partition(END)
        if not begin or not end:
            raise ValueError(f"{document} has no markers of the crash matrix")
        document.write_text(f"{head}{BEGIN}\n{self.table(merged=True)}\n{END}{tail}", encoding="utf-8")


def measure(struck: Struck, run: Run) -> Row:
    """Return what one fault did, as far as no other one can have done it."""
    others = [prolonged(other, run.answers) for other in run.struck if other is not struck]
    answering = [other for other in others if other.name.startswith(ANSWERING)]
    answers = (
        answer.word
        for answer in run.answers
        if struck.began <= answer.begun <= struck.ended and alone(answer.begun, answer.ended, answering)
    )
    accepted = [answer.ended for answer in run.answers if answer.accepted and answer.begun >= struck.ended]
    return Row(
        1,
        Counter(answers),
        recovery(struck.ended, min(accepted, default=None), answering),
        recovery(struck.ended, following(run.done_at, struck.ended), others),
    )


def recovery(ended: float, recovered: float | None, others: Sequence[Struck]) -> float | None:
    """Return how long something took, None where it did not come or another fault was there meanwhile."""
    if recovered is None or not alone(ended, recovered, others):
        return None
    return recovered - ended


def alone(begin: float, end: float, others: Iterable[Struck]) -> bool:
    """Whether no other fault lasted at any moment of a time."""
    return not any(other.began < end and other.ended > begin for other in others)


def following(moments: Sequence[float], moment: float) -> float | None:
    """Return the first of some moments, which are in order, that is not before one."""
    at = bisect_left(moments, moment)
    return moments[at] if at < len(moments) else None


def seconds(value: float | None) -> str:
    """Return a time for the table."""
    return "-" if value is None else f"{value:.1f} s"


def shares(answers: Counter[str]) -> str:
    """Return what part of deliveries was answered what."""
    total = sum(answers.values())
    return ", ".join(f"{word} {count / total:.0%}" for word, count in answers.most_common()) or "-"
