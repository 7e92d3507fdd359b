"""The commands that run the system: the schema, and the three processes in place of this one."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from shared.cli.terminal import say

MAX_PROCESSES = 64
Processes = Annotated[int, typer.Option(min=1, max=MAX_PROCESSES, help="How many to run.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: sume-jobs migrate")(migrate)
    app.command(epilog="Example: sume-jobs api --host 0.0.0.0 --port 8000 --processes 2")(api)
    app.command(epilog="Example: sume-jobs worker --processes 4")(worker)
    app.command(epilog="Example: sume-jobs scheduler --once")(scheduler)


def migrate() -> None:
    """Create or upgrade the schema; safe to run twice at once and on every start."""
    from shared.claims.schema import migrate as migrate_schema  # noqa: PLC0415 - `--help` answers without loading it
    from shared.config import Settings  # noqa: PLC0415 - the same

    settings = Settings.load("DATABASE_URL")
    assert settings.database_url is not None  # noqa: S101 - load has just made sure
    migrate_schema(settings.database_url.get_secret_value())
    say("the schema is up to date")


def api(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 for a free one.")] = 8000,
    processes: Processes = 1,
) -> None:
    """Receive webhooks, until SIGTERM."""
    become("api", "--host", host, "--port", str(port), "--processes", str(processes))


def worker(
    *,
    processes: Processes = 1,
    burst: Annotated[bool, typer.Option("--burst", help="Exit when the queue is empty.")] = False,
) -> None:
    """Download and handle claimed jobs, until SIGTERM."""
    become("worker", "--processes", str(processes), *(["--burst"] if burst else []))


def scheduler(
    *,
    once: Annotated[bool, typer.Option("--once", help="Sweep, poll, prune and clean up once each, then exit.")] = False,
) -> None:
    """Queue overdue jobs again, ask Sume about expected ones, prune; until SIGTERM."""
    become("scheduler", *(["--once"] if once else []))


def become(module: str, *options: str) -> NoReturn:
    """Replace this process by `python -m MODULE`, so that signals and the exit status are the process's own.

    `-P` keeps a folder named api, worker or shared in the working directory from being taken for ours.
    """
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *options])  # noqa: S606 - no shell is wanted
