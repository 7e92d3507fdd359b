"""Loading and calling the user's function."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rq.timeouts import JobTimeoutException, UnixSignalDeathPenalty

from shared.errors import PermanentError, RetryableError, SettingsError
from shared.logs import Redactor
from worker.handler import Handler, Job, load_handler

JOB = Job("job_demo", "job.completed", "OK", {}, None, (), 1)
REDACTOR = Redactor(["hunter22"])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with the user's own modules, none of which is on the path before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def calling(function: Callable[[Job], object]) -> Callable[[], None]:
    return lambda: Handler(function, REDACTOR).call(JOB)


def test_a_handler_in_the_working_directory_is_found(project: Path) -> None:
    (project / "shop").mkdir()
    (project / "shop" / "orders.py").write_text("def deliver(job): job.payload['seen'] = True\n", encoding="utf-8")
    job = Job("job_demo", "job.completed", "OK", {}, None, (), 1)
    load_handler("shop.orders:deliver", redactor=REDACTOR).call(job)
    assert job.payload == {"seen": True}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "HANDLER: cannot import shop: ModuleNotFoundError: No module named 'shop'"),
        ("import nowhere", "HANDLER: cannot import shop: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit('hunter22')", "HANDLER: cannot import shop: SystemExit: [secret]"),
        ("deliver = 1", "HANDLER: shop has no function deliver"),
        ("", "HANDLER: shop has no function deliver"),
    ],
)
def test_a_handler_that_cannot_be_used_is_an_unusable_setting(project: Path, source: str | None, problem: str) -> None:
    if source is not None:
        (project / "shop.py").write_text(source, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_handler("shop:deliver", redactor=REDACTOR)
    assert str(caught.value) == problem


def test_whatever_a_handler_raises_ends_the_attempt_and_not_the_worker() -> None:
    """Its text is one bounded line without secrets, and no traceback is carried on (I2, I9)."""
    for raised in (
        ValueError("no\nhunter22 " + "x" * 2000),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
    ):

        def handler(_job: Job, raised: BaseException = raised) -> None:
            raise raised

        async def async_handler(_job: Job, raised: BaseException = raised) -> None:
            raise raised

        for function in (handler, async_handler):
            with pytest.raises(RetryableError) as caught:
                calling(function)()
            assert caught.value.reason == "handler_failed"
            assert str(caught.value).startswith(type(raised).__name__)
            assert "hunter22" not in str(caught.value)
            assert len(str(caught.value)) < 600
            assert caught.value.__suppress_context__


class UnreadableError(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("error", [UnreadableError(), ValueError("a\0b"), ValueError("bad \udcff name")])
def test_an_exception_of_any_text_is_a_failed_handler(error: Exception) -> None:
    """Its text can be stored, so the job is released as any other."""

    def handle(_job: Job) -> None:
        raise error

    with pytest.raises(RetryableError) as caught:
        calling(handle)()
    assert caught.value.reason == "handler_failed"
    assert str(caught.value).encode().isascii()
    assert "\0" not in str(caught.value)


def test_a_permanent_error_stays_permanent_with_the_handlers_reason() -> None:
    def handler(_job: Job) -> None:
        raise PermanentError("no such order: hunter22", reason="invented")

    with pytest.raises(PermanentError) as caught:
        calling(handler)()
    assert (caught.value.reason, str(caught.value)) == ("handler_failed", "no such order: [secret]")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_rqs_timeout_passes_through_a_handler(kind: str) -> None:
    """It is a plain Exception that a signal raises anywhere; it must not be taken for the handler's own."""

    def handler(_job: Job) -> None:
        time.sleep(10)

    async def async_handler(_job: Job) -> None:
        await asyncio.sleep(10)

    before = signal.getsignal(signal.SIGALRM)
    try:
        penalty = UnixSignalDeathPenalty(1, JobTimeoutException)  # type: ignore[no-untyped-call]  # RQ's
        with pytest.raises(JobTimeoutException), penalty:
            calling(handler if kind == "sync" else async_handler)()
    finally:
        signal.signal(signal.SIGALRM, before)
