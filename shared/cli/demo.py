"""The command `demo`: every story on real servers, and what became of it."""

from typing import Annotated

import typer

from shared.cli.arguments import Json
from shared.cli.terminal import complain_at_length, note

INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sume-jobs demo --keep")(demo)


def demo(
    *, keep: Annotated[bool, typer.Option("--keep", help="Keep the files and logs.")] = False, json: Json = False
) -> int:
    """Run every story against real servers and show what happened.

    Starts PostgreSQL, Valkey, a simulated Sume, api, scheduler and two workers on free loopback ports, and stops
    all of them. No setting is read. Exit status 1 unless every story ended as it must.
    """
    from shared.cli.demo_report import present, steps  # noqa: PLC0415 - `--help` answers without loading it
    from shared.cli.interrupts import interruptible  # noqa: PLC0415 - the same
    from shared.sandbox.stories.demo import play  # noqa: PLC0415 - the same
    from shared.sandbox.stories.told import STORIES  # noqa: PLC0415 - the same
    from shared.sandbox.wheels import SandboxError  # noqa: PLC0415 - the same

    try:
        with interruptible(), steps(len(STORIES)) as tell:
            result = play(keep=keep, tell=tell)
    except KeyboardInterrupt:
        note("interrupted; everything it started is stopped")
        return INTERRUPTED
    except SandboxError as error:
        complain_at_length(str(error))
        return 1
    return present(result, json=json)
