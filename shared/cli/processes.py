"""The commands that run the system: the schema, and the three processes in place of this one."""

import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from shared.cli.terminal import say

if TYPE_CHECKING:
    from shared.config import Settings

MAX_PROCESSES = 64
Processes = Annotated[int, typer.Option(min=1, max=MAX_PROCESSES, help="How many to run.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: sume-jobs migrate")(migrate)
    app.command(epilog="Example: sume-jobs api --host 0.0.0.0 --port 8000 --processes 2")(api)
    app.command(epilog="Example: sume-jobs worker --processes 4")(worker)
    app.command(epilog="Example: sume-jobs scheduler --once")(scheduler)


def migrate(
    *,
    adopt_storage: Annotated[
        bool, typer.Option("--adopt-storage", help="Also say that STORAGE_URL is this database's storage from now on.")
    ] = False,
) -> None:
    """Create or upgrade the schema; safe to run twice at once and on every start.

    Worker and scheduler refuse a storage that is not the one this database knows: a volume that is not mounted, or
    another installation's. --adopt-storage tells the database to know the one that is there. Files of the old one
    that are not there are lost to it; `sume-jobs audit` names them.
    """
    from shared.claims.schema import migrate as migrate_schema  # noqa: PLC0415 - `--help` answers without loading it
    from shared.config import Settings  # noqa: PLC0415 - the same

    settings = Settings.load("DATABASE_URL")
    assert settings.database_url is not None  # noqa: S101 - load has just made sure
    migrate_schema(settings.database_url.get_secret_value())
    say("the schema is up to date")
    if adopt_storage:
        adopt_storage_of(settings)
        say(f"this database now knows the storage at {settings.storage_path}")


def adopt_storage_of(settings: "Settings") -> None:
    """Let the database know the storage of the settings."""
    from shared.claims import open_store  # noqa: PLC0415 - `--help` answers without loading it
    from shared.storage import open_storage  # noqa: PLC0415 - the same
    from shared.storage.recognition import adopt  # noqa: PLC0415 - the same

    with closing(open_store(settings)) as store:
        adopt(open_storage(settings), store)


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
