"""What wrong usage and wrong settings come to: one clear line and exit 2."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, run_script

DATABASE = "postgresql://127.0.0.1:1/none"

WRONG = [
    ((), "name a command"),
    (("nonsense",), "No such command"),
    (("list", "--nonsense"), "No such option"),
    (("list", "--state", "asleep"), "'asleep' is not one of 'expected', 'claimed', 'running', 'done', 'dead'"),
    (("list", "--status", "ok"), "is not one of"),
    (("list", "--limit", "0"), "--limit"),
    (("list", "--cursor", "x"), "cursor"),
    (("show",), "Missing argument"),
    (("show", "../etc"), "no job_id"),
    (("api", "--port", "70000"), "--port"),
    (("worker", "--processes", "0"), "--processes"),
    (("expect", "job a"), "no job_id"),
    (("expect", "job_a", "--due-in", "-1"), "--due-in"),
    (("expect", "job_a", "--due-in", "nan"), "--due-in"),
    (("expect", "job_a", "--status-url", "https://evil.example/v1"), "origin of SUME_API_BASE_URL"),
    (("expect", "job_a", "--status-url", "https://api.open.sume.com@evil.example/"), "origin of SUME_API_BASE_URL"),
    (("expect", "job_a", "--status-url", "/v1/jobs\n"), "printable ASCII"),
    (("requeue",), "name jobs, or give --state dead"),
    (("requeue", "job_a", "--state", "dead"), "name jobs, or give --state dead"),
    (("requeue", "--state", "done"), "--state"),
    (("requeue", "job_a", "--reason", "timed_out"), "go with --state dead"),
    (("requeue", "job_a", "bad/id"), "no job_id"),
    (("requeue", "--state", "dead", "--reason", "bad_luck"), "download_failed"),
    (("requeue", "--state", "dead", "--since", "soon"), "30m, 2h or 1d"),
    (("requeue", "--state", "dead", "--since", "2026-01-31T12:00:00"), "30m, 2h or 1d"),
    (("requeue", "--state", "dead", "--since", "2999-01-31T12:00:00Z"), "future"),
    (("ack",), "name jobs, or give --all"),
    (("ack", "job_a", "--all"), "name jobs, or give --all"),
    (("ack", "bad/id"), "no job_id"),
    (("prune", "--older-than", "-1"), "--older-than"),
    (("prune", "--older-than", "inf"), "--older-than"),
    (("send", "no-such-file.json"), "cannot read no-such-file.json: No such file"),
    (("send", "no-such-file.json", "--event", "job.failed"), "FILE is sent as it is"),
    (("send", "--job-id", "bad/id"), "no job_id"),
    (("send", "--url", "ftp://127.0.0.1/"), "--url must be like"),
    (("send", "--url", "http://[::1"), "--url must be like"),
    (("send", "--times", "0"), "--times"),
    (("send", "--secret", " "), "--secret is empty"),
    (("send", "--timestamp", "1\n2"), "--timestamp"),
]


@pytest.mark.parametrize(("arguments", "problem"), WRONG)
def test_wrong_usage_is_one_line_and_exit_2(bare_cli: Cli, arguments: tuple[str, ...], problem: str) -> None:
    """The line says what is wrong, and nothing has been tried."""
    bare_cli.set(database_url=DATABASE, redis_url="redis://127.0.0.1:1", sume_com_webhook_signing_secret="s3cret")
    ran = bare_cli(*arguments)
    assert ran.code == 2
    assert problem in ran.err
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("migrate",), "DATABASE_URL"),
        (("list",), "DATABASE_URL"),
        (("show", "job_a"), "DATABASE_URL"),
        (("expect", "job_a"), "DATABASE_URL"),
        (("ack", "--all"), "DATABASE_URL"),
        (("audit",), "DATABASE_URL"),
        (("prune",), "DATABASE_URL"),
        (("check", "--json"), "DATABASE_URL"),
        (("stats",), "DATABASE_URL"),
        (("requeue", "job_a"), "DATABASE_URL"),
        (("send",), "SUME_COM_WEBHOOK_SIGNING_SECRET"),
    ],
)
def test_a_missing_setting_is_named(bare_cli: Cli, arguments: tuple[str, ...], name: str) -> None:
    """Exit 2, one line, nothing on stdout."""
    ran = bare_cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith(f"error: {name}: is not set")


@pytest.mark.parametrize("arguments", [("list",), ("send",), ("check",), ("audit", "--json")])
def test_an_unusable_setting_is_named_and_its_value_is_not_repeated(bare_cli: Cli, arguments: tuple[str, ...]) -> None:
    """Whatever the command, since another would stumble over it."""
    bare_cli.set(database_url="mysql://user:hunter22@host/db")
    ran = bare_cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "error: DATABASE_URL: must start with postgresql://" in ran.err
    assert "hunter22" not in ran.err


def test_a_dotenv_that_cannot_be_read_is_one_line(bare_cli: Cli, tmp_path: Path) -> None:
    """It is named, whatever is in it."""
    (tmp_path / ".env").write_bytes(b"\xff\xfehunter22")
    ran = bare_cli("list")
    assert (ran.code, ran.err) == (2, "error: .env: cannot be read: UnicodeDecodeError\n")


@pytest.mark.parametrize("option", ["bogus=1", "socket_timeout=hunter22"])
def test_a_redis_option_that_does_not_exist_is_a_wrong_setting(bare_cli: Cli, option: str) -> None:
    """It is found before anything connects, and not repeated."""
    bare_cli.set(database_url=DATABASE, redis_url=f"redis://127.0.0.1:1?{option}")
    ran = bare_cli("stats")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: REDIS_URL: has an option")
    assert "hunter22" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [("migrate",), ("list", "--json"), ("show", "job_a"), ("stats", "--json"), ("audit", "--json"), ("prune",)],
)
def test_a_database_that_is_away_is_one_line_and_exit_1(bare_cli: Cli, arguments: tuple[str, ...]) -> None:
    """No traceback, and the password stays out of it."""
    bare_cli.set(database_url="postgresql://me:hunter22@127.0.0.1:1/none", redis_url="redis://127.0.0.1:1")
    ran = bare_cli(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: PostgreSQL cannot be reached")
    assert ran.err.count("\n") == 1
    assert "hunter22" not in ran.err


def test_the_installed_script_keeps_the_same_promises(tmp_path: Path) -> None:
    """Settings come from .env in the working directory; the exit status and the streams are the process's own."""
    (tmp_path / ".env").write_text("DATABASE_URL=postgresql://127.0.0.1:1/none\nLOG_LEVEL=loud\n")
    ran = run_script("list", "--json", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: LOG_LEVEL: ")
    ran = run_script("list", "--json", folder=tmp_path, log_level="info")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: PostgreSQL cannot be reached")
