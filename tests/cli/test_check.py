"""What the doctor finds."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared import clock
from shared.cli.checks import examine_clock
from shared.cli.handler_check import handler_problem
from shared.cli.sume_check import SumeAnswer, read_clock
from shared.sandbox.sume.simulator import Sume
from tests.claims.postgres_subject import PostgresSubject
from tests.cli.conftest import Cli, Ran
from tests.conftest import MakeSettings
from tests.sume.answering import answer, answering

API_KEY = "throwaway-api-key"


@pytest.fixture
def sume() -> Iterator[Sume]:
    """A Sume with its own key."""
    with Sume(secret="s", api_key=API_KEY) as sume:
        yield sume


def outcomes(ran: Ran) -> dict[str, str]:
    """Return each check's outcome."""
    return {check["name"]: check["outcome"] for check in ran.json()["checks"]}


def detail(ran: Ran, name: str) -> str:
    """Return what was found about one thing."""
    return " ".join(check["detail"] for check in ran.json()["checks"] if check["name"] == name)


def test_all_is_well(cli: Cli, sume: Sume, tmp_path: Path) -> None:
    """One line each, exit 0; no worker listening is a warning; nothing is left in the storage."""
    (tmp_path / "my_handlers.py").write_text("def store(job): ...\n")
    cli.set(sume_api_base_url=sume.api_url, sume_api_key=API_KEY, handler="my_handlers:store")
    ran = cli("check", "--json")
    assert (ran.code, ran.err, ran.json()["ok"]) == (0, "", True)
    assert outcomes(ran) == {
        "settings": "ok",
        "signing secret": "ok",
        "database": "ok",
        "schema": "ok",
        "redis": "warn",
        "storage": "ok",
        "handler": "ok",
        "sume api": "ok",
        "alerts": "off",
        "operator api": "off",
        "clock": "ok",
    }
    lines = cli("check").out.splitlines()
    assert len(lines) == len(outcomes(ran))
    assert [line.split()[0] for line in lines].count("ok") == 8
    assert not [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("settings", "name", "problem"),
    [
        ({"database_url": "postgresql://me:hunter22@127.0.0.1:1/x"}, "database", "cannot be reached"),
        ({"redis_url": "redis://:hunter22@127.0.0.1:1"}, "redis", "Redis: ConnectionError"),
        ({"storage_url": "file:///dev/null/artifacts"}, "storage", "storage could not"),
        ({"sume_com_webhook_signing_secret": None}, "signing secret", "every delivery is refused"),
    ],
)
def test_what_is_broken_fails(cli: Cli, settings: dict[str, str | None], name: str, problem: str) -> None:
    """Exit 1, the others are looked at all the same, and no password is printed."""
    cli.set(**settings)
    ran = cli("check", "--json")
    assert (ran.code, ran.json()["ok"]) == (1, False)
    assert outcomes(ran)[name] == "fail"
    assert problem in detail(ran, name)
    assert outcomes(ran)["clock"] in {"ok", "warn"}
    text = cli("check")
    assert text.code == 1
    assert "FAIL" in text.out
    assert "hunter22" not in ran.out + ran.err + text.out + text.err


def test_a_database_without_schema_is_told_to_migrate(bare_cli: Cli, empty_database_url: str, redis_url: str) -> None:
    """And after `migrate` it is right."""
    bare_cli.set(database_url=empty_database_url, redis_url=redis_url, sume_com_webhook_signing_secret="s")
    ran = bare_cli("check")
    assert (ran.code, "run: sume-jobs migrate" in ran.out) == (1, True)
    for _ in range(2):
        assert bare_cli("migrate").out == "the schema is up to date\n"
    assert bare_cli("check").code == 0


def test_a_wrong_api_key_fails(cli: Cli, sume: Sume) -> None:
    """Sume is asked, and the key is not printed."""
    cli.set(sume_api_base_url=sume.api_url, sume_api_key="wrong-key")
    ran = cli("check", "--json")
    assert (ran.code, outcomes(ran)["sume api"]) == (1, "fail")
    assert "answered 401" in detail(ran, "sume api")
    assert "wrong-key" not in ran.out


def test_a_sume_that_is_away_fails_and_the_clock_is_still_compared(cli: Cli) -> None:
    """With the database's."""
    cli.set(sume_api_base_url="http://127.0.0.1:1", sume_api_key="key")
    ran = cli("check", "--json")
    assert (ran.code, outcomes(ran)["sume api"], outcomes(ran)["clock"]) == (1, "fail", "ok")


def test_without_a_key_sume_is_not_asked(cli: Cli, sume: Sume) -> None:
    """Polling is off, and says so."""
    cli.set(sume_api_base_url=sume.api_url)
    ran = cli("check", "--json")
    assert (ran.code, outcomes(ran)["sume api"]) == (0, "off")
    assert "SUME_API_KEY is not set" in detail(ran, "sume api")


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import sys\nprint('to stdout')\nsys.exit(0)", "SystemExit"),
        ("import os\nos._exit(7)", "ended with 7"),
        ("store = 3", "has no function store"),
        ("import nowhere", "No module named 'nowhere'"),
    ],
)
def test_a_handler_that_cannot_be_imported_is_a_wrong_setting(
    cli: Cli, tmp_path: Path, module: str, problem: str
) -> None:
    """Exit 2 and one line naming it, after all else was looked at; nothing it prints reaches our stdout."""
    (tmp_path / "my_handlers.py").write_text(module)
    cli.set(handler="my_handlers:store")
    ran = cli("check", "--json")
    assert (ran.code, outcomes(ran)["handler"]) == (2, "fail")
    assert ran.err.startswith("error: HANDLER: ")
    assert problem in ran.err
    assert ran.err.count("\n") == 1


def test_a_handler_that_hangs_is_given_up(bare_cli: Cli, tmp_path: Path) -> None:
    """Its process is ended."""
    (tmp_path / "my_handlers.py").write_text("import threading\nthreading.Event().wait()")
    bare_cli.set(handler="my_handlers:store")
    assert handler_problem(patience=timedelta(seconds=3)) == "importing it takes more than 3 s"


def test_a_folder_of_the_users_is_not_taken_for_ours(cli: Cli, tmp_path: Path) -> None:
    """A project may have packages named worker and shared."""
    for name in ("worker", "shared"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')")
    (tmp_path / "my_handlers.py").write_text("def store(job): ...\n")
    cli.set(handler="my_handlers:store")
    assert cli("check").code == 0


@pytest.mark.parametrize(
    ("ahead", "database", "outcome"),
    [
        (timedelta(seconds=2), timedelta(seconds=-2), "ok"),
        (timedelta(seconds=31), timedelta(0), "warn"),
        (timedelta(seconds=-31), None, "warn"),
        (timedelta(seconds=301), timedelta(0), "fail"),
        (timedelta(seconds=-301), timedelta(0), "fail"),
        (None, timedelta(seconds=40), "warn"),
        (None, timedelta(days=40), "warn"),
        (None, None, "warn"),
    ],
)
def test_a_wrong_clock_is_noticed_before_sume_is_refused(
    make_settings: MakeSettings, ahead: timedelta | None, database: timedelta | None, outcome: str
) -> None:
    """From a tenth of the tolerance on a warning; beyond it every delivery is stale. The database's signs nothing."""
    now = clock.now()
    server = None if database is None else now + database
    finding = examine_clock(make_settings(), sume=SumeAnswer(ahead=ahead), database=server, asked_at=now)
    assert finding.outcome == outcome


@pytest.mark.parametrize("headers", [("Date: yesterday",), (), ("Date: Thu, 01 Jan 2026 00:00:00 -0000",)])
def test_an_answer_without_a_date_tells_no_time(headers: tuple[str, ...]) -> None:
    """It is nothing to compare with."""
    with answering(answer(b"", *headers)) as server:
        assert read_clock(server.base_url) is None


def test_the_date_of_an_answer_tells_sumes_time(sume: Sume) -> None:
    """To the second, so that a right clock differs by nothing; asked without our key."""
    assert read_clock(sume.api_url) == timedelta(0)
    stated = "Date: Thu, 01 Jan 2026 00:00:00 GMT"
    with answering(answer(b"", stated)) as server:
        behind: Any = read_clock(server.base_url)
        assert not any(b"uthorization" in head for head in server.requests)
    assert abs(clock.now() + behind - datetime.fromisoformat("2026-01-01T00:00:00Z")) < timedelta(seconds=5)


def test_a_strange_storage_is_a_failure(cli: Cli, subject: PostgresSubject) -> None:
    """It says what to do, and `migrate --adopt-storage` is that."""
    subject.store.keep_storage_id("another")
    ran = cli("check", "--json")
    (storage,) = [finding for finding in ran.json()["checks"] if finding["name"] == "storage"]
    assert (ran.code, storage["outcome"]) == (1, "fail")
    assert "mount or restore the right one" in storage["detail"]
    assert cli("migrate", "--adopt-storage").code == 0
    assert outcomes(cli("check", "--json"))["storage"] == "ok"


def test_a_storage_that_is_nearly_full_is_a_failure(cli: Cli) -> None:
    cli.set(storage_min_free_bytes=str(2**53))
    assert outcomes(cli("check", "--json"))["storage"] == "fail"
