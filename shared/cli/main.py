"""The console script `sume-jobs`: its commands, put together, and what becomes of their errors."""

import io
import os
import sys
from collections.abc import Sequence

import typer

from shared.cli import deliver, demo, dev, doctor, look, operate, processes, quarantine
from shared.cli.terminal import complain
from shared.errors import SettingsError, SumeJobsError, UsageError

GROUPS = (demo, dev, processes, deliver, look, operate, quarantine, doctor)
"""Each registers its commands; `--help` lists them in this order."""


def build_app() -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        help="Put Sume's webhooks on Postgres and Redis: no paid job is lost, none is handled twice.",
        epilog="Settings come from the environment and from .env in the working directory. "
        "Exit status: 0 success, 1 failure, 2 wrong usage or settings.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for group in GROUPS:
        group.register(app)
    return app


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; an error that was to be expected is one line on stderr."""
    try:
        status: int | None = build_app()(list(arguments), prog_name="sume-jobs", standalone_mode=False)
    except (SettingsError, UsageError) as error:
        complain(str(error))
        return 2
    except SumeJobsError as error:
        complain(str(error))
        return 1
    except typer.TyperException as error:  # wrong usage, as typer sees it
        complain(usage_line(error))
        return error.exit_code
    return status or 0


def usage_line(error: typer.TyperException) -> str:
    """Return what was wrong and where to read how it is done right."""
    command = getattr(getattr(error, "ctx", None), "command_path", "sume-jobs")
    problem = error.format_message().replace("Value error, ", "").rstrip(".") or "name a command"
    return f"{problem}; see {command} --help"


def run() -> None:
    """Be the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale without UTF-8 must not end a command
    status = main(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has read enough; the interpreter must not flush once more and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
