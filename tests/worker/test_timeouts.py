"""How an attempt ends that takes too long."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rq.timeouts import JobTimeoutException, UnixSignalDeathPenalty

from tests.worker.bench import FIRST, Bench
from worker.handler import Job


@contextmanager
def rqs_timeout() -> Iterator[None]:
    """Let RQ's timeout strike after a second."""
    before = signal.getsignal(signal.SIGALRM)
    try:
        with UnixSignalDeathPenalty(1, JobTimeoutException):  # type: ignore[no-untyped-call]  # RQ's
            yield
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_attempt_ends_at_its_deadline(bench: Bench) -> None:
    """A download that goes on and on is told by the check between its chunks."""
    bench.change_settings(job_timeout_seconds=0.5)
    slow = bench.sume.host("slow.png", FIRST * 1000, drip_bytes=10)
    bench.claim("job_demo", artifacts=[slow])
    before = time.monotonic()
    bench.attempt()
    assert time.monotonic() - before < 2
    assert bench.outcome() == ("claimed", "timed_out", 1)


def test_rqs_timeout_releases_a_job_whose_handler_never_ends(bench: Bench) -> None:
    def handler(_job: Job) -> None:
        threading.Event().wait(30)

    bench.handled_by(handler)
    bench.claim("job_demo", artifacts=[FIRST])
    with rqs_timeout():
        bench.attempt()
    assert bench.outcome() == ("claimed", "timed_out", 1)


def test_rqs_timeout_ends_the_download_of_a_single_file(bench: Bench) -> None:
    """It strikes in the thread that downloads, which leaves nothing behind."""
    slow = bench.sume.host("slow.png", FIRST * 1000, stall_after=10)
    bench.claim("job_demo", artifacts=[slow])
    with rqs_timeout():
        bench.attempt()
    slow.release()
    assert bench.outcome() == ("claimed", "timed_out", 1)
    assert bench.files() == {}
