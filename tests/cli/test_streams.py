"""What a command does when its streams are not as wished."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from shared.claims.records import Claim
from shared.claims.states import Reason
from shared.config import child_environment
from tests.claims.postgres_subject import PostgresSubject
from tests.cli.conftest import SCRIPT, run_script
from tests.conformance.leasing import bring_to
from tests.conformance.subject import event


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("jobs", [1, 200])
def test_a_closed_pipe_ends_it_quietly(
    tmp_path: Path, subject: PostgresSubject, database_url: str, options: tuple[str, ...], jobs: int
) -> None:
    """As behind `| head`, whether the pipe is closed while it prints or when it flushes the rest."""
    subject.store.claim_many([Claim(event(f"job_{number}")) for number in range(jobs)])
    with started("list", *options, folder=tmp_path, database_url=database_url) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) == 1
        assert error_of(process) == b""


def test_an_interrupt_ends_it_with_130(tmp_path: Path) -> None:
    """Without a traceback, also while it waits."""
    fifo = tmp_path / "body"
    os.mkfifo(fifo)
    with started("send", "body", folder=tmp_path) as process, fifo.open("wb"):  # opened once the script reads it
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert error_of(process) == b""


def started(*arguments: str, folder: Path, **settings: str) -> subprocess.Popen[bytes]:
    """Start the script with pipes for its streams."""
    return subprocess.Popen(
        [str(SCRIPT), *arguments],
        cwd=folder,
        env=child_environment(PYTHONUNBUFFERED="", **{name.upper(): value for name, value in settings.items()}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def error_of(process: subprocess.Popen[bytes]) -> bytes:
    """Return what it wrote to stderr until its end."""
    assert process.stderr is not None
    return process.stderr.read()


def test_a_locale_without_utf8_ends_nothing(tmp_path: Path, subject: PostgresSubject, database_url: str) -> None:
    """What it cannot show is escaped."""
    subject.deliver("job_a")
    token = subject.take("job_a").token
    subject.store.bury("job_a", token=token, reason=Reason.HANDLER_FAILED, error="déjà vu")
    ran = run_script("list", folder=tmp_path, database_url=database_url, PYTHONIOENCODING="ascii")
    assert (ran.code, ran.err) == (0, "")
    assert r"d\xe9j\xe0 vu" in ran.out
    assert ran.out.isascii()


def test_stdout_holds_nothing_but_the_result(tmp_path: Path, subject: PostgresSubject, database_url: str) -> None:
    """Even where a warning is logged: Redis is away while a job is reopened."""
    bring_to(subject, "job_a", "dead")
    ran = run_script("requeue", "job_a", folder=tmp_path, database_url=database_url, redis_url="redis://127.0.0.1:1")
    assert (ran.code, ran.out) == (0, "requeued: 1\n")
    assert ran.err.count("\n") == 1
