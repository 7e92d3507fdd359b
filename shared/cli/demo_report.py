"""How the demo shows its progress and its result."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from shared.cli.tables import problem_table, table
from shared.cli.terminal import console, literal, note, print_json, say
from shared.sandbox.stories.demo import Result, Verdict

AROUND = 3
"""Steps besides the stories: starting, audit, stopping."""
WIDE = 130
"""Columns of a terminal that the whole table fits into with some words of what happened on a line."""


@contextmanager
def steps(stories: int) -> Iterator[Callable[[str], None]]:
    """Lend a function to call before each step; draws a bar for people, and lines where there is no terminal."""
    total = stories + AROUND
    if not sys.stderr.isatty():
        numbers = iter(range(1, total + 1))
        yield lambda text: note(f"[{next(numbers)}/{total}] {text}")
        return
    columns = (SpinnerColumn(), BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, completed=-1)

        def tell(text: str) -> None:
            bar.update(task, advance=1, description=text)

        yield tell


def present(result: Result, *, json: bool) -> int:
    """Print the result and return the exit status."""
    if json:
        print_json(result_view(result))
    else:
        report(result)
    return 0 if result.ok else 1


def report(result: Result) -> None:
    """Print the table, whatever went wrong with its log, and the audit."""
    screen = console()
    screen.print(story_table(result.verdicts, width=screen.width))
    for verdict in result.verdicts:
        if not verdict.ok:
            explain(verdict)
    if result.audit is not None and result.audit.ok:
        say(f"audit: ok, {result.audit.checked} jobs checked, each done with its files as recorded or visibly open")
    elif result.audit is not None:
        say("audit: not everything is accounted for")
        console().print(problem_table(result.audit.problems))
    if result.kept is not None:
        say(f"kept: artifacts and logs are in {result.kept}")
    say(f"{'every story ended as it must' if result.ok else 'FAILED'}, in {result.seconds:.1f} s")


def story_table(verdicts: list[Verdict], *, width: int) -> Table:
    """Return one row a story, higher instead of wider where there is little room."""
    if width >= WIDE:
        made = table("story", "what happened", "deliveries", "attempts", "files", "seconds", "verdict")
    else:
        made = table("story", "", "verdict")
        made.columns[0].no_wrap = False
    for verdict in verdicts:
        title, happened = literal(verdict.title, "bold"), literal(verdict.happened)
        judged = Text("as it must", "green") if verdict.ok else Text("WRONG", "bold red")
        if width >= WIDE:
            made.add_row(title, happened, *map(literal, counts(verdict).values()), judged)
        else:
            facts = Text("\n").join(literal(f"{name} {value}") for name, value in counts(verdict).items())
            made.add_row(Text("\n").join([title, happened]), facts, judged, end_section=True)
    return made


def counts(verdict: Verdict) -> dict[str, object]:
    """Return the figures of a story, empty ones where it had no ending."""
    job = verdict.job
    return {
        "deliveries": "" if job is None else job.deliveries,
        "attempts": "" if job is None else job.attempts,
        "files": "" if job is None else len(job.artifacts),
        "seconds": f"{verdict.seconds:.1f}",
    }


def explain(verdict: Verdict) -> None:
    """Tell what was wrong with a story, and show the log that says why."""
    for problem in verdict.problems:
        for line in problem.splitlines():
            note(f"{verdict.title}: {line}")
    for line in verdict.log_tail:
        note(f"  {line}")


def result_view(result: Result) -> dict[str, Any]:
    """Return the result for scripts."""
    audit = result.audit
    return {
        "ok": result.ok,
        "seconds": round(result.seconds, 1),
        "stories": [story_view(verdict) for verdict in result.verdicts],
        "audit": None
        if audit is None
        else {"ok": audit.ok, "checked": audit.checked, "problems": [asdict(problem) for problem in audit.problems]},
        "kept": None if result.kept is None else str(result.kept),
    }


def story_view(verdict: Verdict) -> dict[str, Any]:
    """Return one story for scripts."""
    job = verdict.job
    return {
        "story": verdict.title,
        "ok": verdict.ok,
        "happened": verdict.happened,
        "job_id": job.job_id if job else None,
        "deliveries": job.deliveries if job else None,
        "attempts": job.attempts if job else None,
        "files": [{"path": a.path, "bytes": a.bytes, "sha256": a.sha256} for a in job.artifacts] if job else [],
        "seconds": round(verdict.seconds, 1),
        "problems": list(verdict.problems),
        "log_tail": list(verdict.log_tail),
    }
