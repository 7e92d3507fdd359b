"""What the commands print: data on stdout, everything else on stderr, nothing that could steer a terminal."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

UNBOUNDED_WIDTH = 10_000
"""For a pipe or a file: no column is cut to fit a screen that is not there."""
MANY = 20
"""Fewer steps than this need no progress bar."""

SHOWN = {"\n": " ", "\r": " ", "\t": " "}

Step = Callable[[], None]


def printable(text: str) -> str:
    """Return a text on one line, with every control character replaced."""
    return "".join(char if char.isprintable() else SHOWN.get(char, "\N{REPLACEMENT CHARACTER}") for char in text)


def literal(value: object, style: str = "") -> Text:
    """Return a value for a table, with no character of it read as markup; None is an empty cell."""
    return Text("" if value is None else printable(str(value)), style=style)


def say(text: str) -> None:
    """Print one line of result."""
    sys.stdout.write(f"{printable(text)}\n")


def note(text: str) -> None:
    """Print one line to people, out of the way of scripts."""
    sys.stdout.flush()
    sys.stderr.write(f"{printable(text)}\n")


def complain(text: str) -> None:
    """Print the one line that says what is wrong."""
    note(f"error: {text}")


def complain_at_length(text: str) -> None:
    """Print what is wrong and, below it, the lines that explain it, such as the end of a log."""
    first, *more = text.splitlines() or [""]
    complain(first)
    for line in more:
        note(f"  {line}")


def print_json(document: Any) -> None:
    """Print a document for scripts, in ASCII, so that it is safe and whole on any terminal and in any locale."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def console() -> Console:
    """Return where tables go: as wide as the terminal, or as they need to be where there is none."""
    on_screen = sys.stdout.isatty()
    return Console(highlight=False, emoji=False, markup=False, width=None if on_screen else UNBOUNDED_WIDTH)


@contextmanager
def progress_bar(title: str, *, total: int) -> Iterator[Step]:
    """Lend a function to call after each step; draws on stderr, only for people and only for many steps."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=total < MANY or not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
