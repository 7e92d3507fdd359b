"""The command `dev`: the whole system on this machine, until Ctrl-C."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from shared.cli.terminal import complain_at_length, note

if TYPE_CHECKING:
    from shared.sandbox.dev import Dev

LOOK_SECONDS = 0.2
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="Port of the api.", show_default="8000 if free")]
DashboardPort = Annotated[
    int | None, typer.Option(min=1, max=65_535, help="Port of rq-dashboard.", show_default="9181 if free")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sume-jobs dev --port 8080")(dev)


def dev(*, port: Port = None, dashboard_port: DashboardPort = None) -> int:
    """Start everything on loopback, print every URL and credential, show the logs, stop with Ctrl-C.

    PostgreSQL, Valkey, a simulated Sume, api, worker, scheduler and rq-dashboard. Each start is a fresh one: the
    database is new, and ./.dev, where files and logs lie, is emptied. No setting is read.
    """
    from shared.cli.interrupts import interruptible  # noqa: PLC0415 - `--help` answers without loading it
    from shared.sandbox.dev import dev_system  # noqa: PLC0415 - the same
    from shared.sandbox.wheels import SandboxError  # noqa: PLC0415 - the same

    try:
        with interruptible():
            note("starting; this takes some seconds")
            with dev_system(port=port, dashboard_port=dashboard_port) as running:
                stay(running)
    except KeyboardInterrupt:
        note("everything is stopped")
        return 0
    except SandboxError as error:
        complain_at_length(str(error))
    return 1


def stay(running: "Dev") -> None:
    """Print how to use the system, then its logs, until interrupted; say loudly when a process of it has died."""
    from shared.cli.dev_screen import Screen  # noqa: PLC0415 - `--help` answers without loading it

    screen = Screen(running)
    screen.introduce()
    try:
        while True:
            screen.show_news()
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        screen.show_news()
        note("stopping everything")
        raise
