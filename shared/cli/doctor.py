"""The command `check`: everything that must be right before a webhook is accepted, one line each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from shared.cli.arguments import Json
from shared.cli.terminal import console, literal, print_json
from shared.errors import SettingsError

if TYPE_CHECKING:
    from shared.cli.checks import Finding, Outcome

SHOWN: Mapping["Outcome", tuple[str, str]] = {
    "ok": ("ok", "green"),
    "off": ("off", "dim"),
    "warn": ("WARN", "yellow"),
    "fail": ("FAIL", "bold red"),
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sume-jobs check")(check)


def check(*, json: Json = False) -> int:
    """Check settings, database, schema, Redis, storage, handler, Sume API key and clock; one line each.

    What is merely off, such as polling without an API key, is no failure; a receiver without a signing secret is, as
    it refuses every delivery. Sume's API is asked once about a job that does not exist. Exit status 1 if anything
    fails, 2 if it is a setting.
    """
    from shared.cli.checks import examine  # noqa: PLC0415 - `--help` answers without loading it
    from shared.config import Settings  # noqa: PLC0415 - the same

    findings = list(examine(Settings.load("DATABASE_URL", "REDIS_URL")))
    failed = [finding for finding in findings if finding.outcome == "fail"]
    if json:
        print_json({"ok": not failed, "checks": [view(finding) for finding in findings]})
    else:
        print_findings(findings)
    for finding in failed:
        if finding.name == "handler":
            raise SettingsError("HANDLER", finding.detail)
    return 1 if failed else 0


def view(finding: "Finding") -> dict[str, str | None]:
    """Return a finding for scripts."""
    return asdict(finding)


def print_findings(findings: Sequence["Finding"]) -> None:
    """Print a line for each finding: its outcome, what was found, and what to do."""
    where = console()
    for finding in findings:
        word, style = SHOWN[finding.outcome]
        advice = f"; {finding.advice}" if finding.advice else ""
        told = literal(f"{finding.name:<15} {finding.detail}{advice}")
        where.print(Text.assemble(literal(f"{word:<5}", style), told), soft_wrap=True)
