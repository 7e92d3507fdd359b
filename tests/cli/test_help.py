"""What the help promises."""

import subprocess
import sys

import pytest

from tests.cli.conftest import Cli

COMMANDS = {
    "migrate": (),
    "api": ("--host", "--port", "--processes"),
    "worker": ("--processes", "--burst"),
    "scheduler": ("--once",),
    "check": ("--json",),
    "send": ("FILE", "--job-id", "--event", "--url", "--secret", "--times", "--timestamp"),
    "expect": ("--status-url", "--due-in"),
    "list": ("--state", "--status", "--redelivered", "--limit", "--json"),
    "show": ("--json",),
    "requeue": ("JOB_ID", "--state", "--reason", "--since", "--force"),
    "ack": ("JOB_ID", "--all"),
    "stats": ("--json",),
    "audit": ("--json",),
    "prune": ("--older-than", "--dry-run"),
    "quarantine": ("list", "show", "replay"),
}
"""The contract's table, without the demo's commands."""

HEAVY = ("sqlalchemy", "psycopg", "rq", "redis", "pydantic_settings", "httpx", "alembic", "sume_client", "structlog")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_its_options(bare_cli: Cli, command: str) -> None:
    """Nobody has to guess how a command is called, and no setting is needed to ask."""
    ran = bare_cli(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Example: sume-jobs {command}" in ran.out
    for option in COMMANDS[command]:
        assert option in ran.out


@pytest.mark.parametrize(
    ("command", "options"),
    [("list", ("--all", "--limit", "--json")), ("show", ("ID", "--raw")), ("replay", ("--all",))],
)
def test_so_has_every_command_about_quarantine(bare_cli: Cli, command: str, options: tuple[str, ...]) -> None:
    """The group has commands of its own."""
    ran = bare_cli("quarantine", command, "--help")
    assert f"Example: sume-jobs quarantine {command}" in ran.out
    assert all(option in ran.out for option in options)


def test_the_list_of_commands_is_whole(bare_cli: Cli) -> None:
    """`--help` names every command of the contract."""
    ran = bare_cli("--help")
    assert ran.code == 0
    for command in COMMANDS:
        assert f"│ {command} " in ran.out


def test_help_loads_nothing_it_does_not_need() -> None:
    """It answers at once: databases, queues and HTTP clients are imported by the commands that use them."""
    script = (
        f"import sys; from shared.cli.main import main; main(['--help']); "
        f"sys.exit(','.join(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr.strip() == ""
