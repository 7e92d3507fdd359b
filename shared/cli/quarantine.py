"""The commands about signed deliveries that were not understood: list, show, replay."""

import sys
from typing import Annotated

import typer

from shared.cli.arguments import Json
from shared.cli.terminal import complain, console, note, print_json, say
from shared.errors import UsageError

LARGEST_ID = 2**63 - 1

QuarantineId = Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Signed deliveries that could not be understood: kept whole, and replayed once they are.",
        no_args_is_help=True,
    )
    group.command("list", epilog="Example: sume-jobs quarantine list --all --json")(list_quarantine)
    group.command(epilog="Example: sume-jobs quarantine show 7")(show)
    group.command(epilog="Example: sume-jobs quarantine replay --all")(replay)
    app.add_typer(group, name="quarantine", epilog="Example: sume-jobs quarantine list")


def list_quarantine(
    *,
    everything: Annotated[bool, typer.Option("--all", help="Those that were replayed too.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """List what is in quarantine, the latest first; what was replayed comes last, with --all alone."""
    from shared.cli.quarantine_tables import quarantine_table  # noqa: PLC0415 - `--help` answers without loading it
    from shared.cli.session import store_session  # noqa: PLC0415 - the same
    from shared.clock import now  # noqa: PLC0415 - the same
    from shared.views import quarantine_view  # noqa: PLC0415 - the same

    with store_session() as (_settings, store):
        entries = store.list_quarantine(replayed=everything, limit=limit + 1)
    shown = entries[:limit]
    if json:
        print_json({"quarantine": [quarantine_view(entry) for entry in shown]})
    elif not shown:
        say("nothing is in quarantine")
    else:
        console().print(quarantine_table(shown, now=now()))
    if len(entries) > limit:
        note(f"there are more: --limit {limit * 2}")


def show(
    quarantine_id: QuarantineId,
    *,
    raw: Annotated[bool, typer.Option("--raw", help="Write the body alone, byte for byte, to stdout.")] = False,
    json: Json = False,
) -> int:
    """Show one with its body, made safe for a terminal and without the queries of URLs, which may be signed.

    Exit status 1 when it is unknown.
    """
    from shared.cli.quarantine_tables import print_quarantined, readable  # noqa: PLC0415 - `--help` without it
    from shared.cli.session import store_session  # noqa: PLC0415 - the same
    from shared.clock import now  # noqa: PLC0415 - the same
    from shared.views import quarantine_view  # noqa: PLC0415 - the same

    number = read_id(quarantine_id)
    if raw and json:
        raise UsageError("--raw and --json exclude each other")
    with store_session() as (_settings, store):
        kept = store.get_quarantined(number)
    if kept is None:
        complain(f"{number} is not in quarantine")
        return 1
    if raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(kept.body)
        sys.stdout.buffer.flush()
    elif json:
        print_json(quarantine_view(kept.entry) | {"body": "\n".join(readable(kept.body))})
    else:
        print_quarantined(console(), kept, now=now())
    return 0


def replay(
    *,
    quarantine_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="As `list` shows them.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that were not replayed yet.")] = False,
) -> int:
    """Read bodies again with this release, and claim the jobs of those that are understood now.

    A body was verified when it came; replayed, it counts as one delivery. What is still not understood stays. Exit
    status 1 when any stays, or a named one is unknown.
    """
    from shared.cli.replay import replay_all  # noqa: PLC0415 - `--help` answers without loading it

    named = quarantine_ids or []
    if bool(named) == everything:
        raise UsageError("name some by ID, or give --all")
    return replay_all(None if everything else [read_id(text) for text in dict.fromkeys(named)])


def read_id(text: str) -> int:
    """Return the number of a body in quarantine; raises UsageError for what can be none."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_ID)) and 0 < int(text) <= LARGEST_ID):
        raise UsageError(f"{text[:40]!r} is no number of a body in quarantine; see sume-jobs quarantine list")
    return int(text)
