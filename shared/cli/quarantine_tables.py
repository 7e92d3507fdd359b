"""How bodies in quarantine look to people."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table

from shared.claims.quarantine import QuarantinedBody, QuarantineEntry
from shared.cli.tables import ago, stamp, table
from shared.cli.terminal import literal, printable
from shared.logs import Redactor


def quarantine_table(entries: Sequence[QuarantineEntry], *, now: datetime) -> Table:
    """Return a list of them."""
    made = table("id", "reason", "count", "bytes", "first seen", "last seen", "replayed")
    for entry in entries:
        made.add_row(
            literal(entry.id),
            literal(entry.reason, "green" if entry.replayed_at else "yellow"),
            literal(entry.count),
            literal(entry.bytes),
            literal(ago(entry.first_seen, now=now)),
            literal(ago(entry.last_seen, now=now)),
            literal(ago(entry.replayed_at, now=now)),
        )
    return made


def print_quarantined(where: Console, kept: QuarantinedBody, *, now: datetime) -> None:
    """Print the facts, and below them the body."""
    entry = kept.entry
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name in ("id", "reason", "count", "bytes"):
        grid.add_row(name, literal(getattr(entry, name)))
    for name in ("first_seen", "last_seen", "replayed_at"):
        moment: datetime | None = getattr(entry, name)
        if moment is not None:
            grid.add_row(name, literal(f"{stamp(moment)}  ({ago(moment, now=now)})"))
    where.print(grid)
    where.print()
    for line in readable(kept.body):
        where.print(literal(line), soft_wrap=True)


def readable(body: bytes) -> list[str]:
    r"""Return the lines of any bytes: what is not UTF-8 as `\xff`, nothing that steers a terminal, no URL's query."""
    redact = Redactor()
    return [redact.text(printable(line)) for line in body.decode("utf-8", errors="backslashreplace").split("\n")]
