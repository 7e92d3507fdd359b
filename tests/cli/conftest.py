"""The console script as tests call it: in this process for its logic, as a process for what only a process shows."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.cli.main import main
from shared.config import child_environment
from tests.claims.postgres_subject import PostgresSubject
from tests.conftest import SIGNING_SECRET

SCRIPT = Path(sys.executable).with_name("sume-jobs")


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return what was printed for scripts, which must be all there is on stdout."""
        return json.loads(self.out)


class Cli:
    """Runs commands in this process, in a folder and with settings of the test's own."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capsys = capsys

    def set(self, **settings: str | None) -> None:
        """Set settings, or with None unset them."""
        for name, value in settings.items():
            if value is None:
                self._patch.delenv(name.upper(), raising=False)
            else:
                self._patch.setenv(name.upper(), value)

    def __call__(self, *arguments: str) -> Ran:
        """Run one command."""
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)


@pytest.fixture
def bare_cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """The commands without any setting, in an empty folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        yield Cli(patch, capsys)


@pytest.fixture
def cli(bare_cli: Cli, database_url: str, redis_url: str) -> Cli:
    """The commands with a migrated database, an empty Redis and a throwaway secret."""
    bare_cli.set(database_url=database_url, redis_url=redis_url, sume_com_webhook_signing_secret=SIGNING_SECRET)
    bare_cli.set(storage_min_free_bytes="0")  # on a disk of any size
    return bare_cli


@pytest.fixture
def subject(database_url: str) -> Iterator[PostgresSubject]:
    """The store behind `cli`, and how its time passes."""
    subject = PostgresSubject(database_url)
    with closing(subject.store):
        yield subject


def run_script(*arguments: str, folder: Path, **settings: str) -> Ran:
    """Run the installed console script as a user does."""
    done = subprocess.run(
        [SCRIPT, *arguments],
        cwd=folder,
        env=child_environment(**{name.upper(): value for name, value in settings.items()}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
