"""Whatever happens to a worker process, another one works, and none is left behind."""

import os
import signal
import time
from contextlib import suppress
from datetime import timedelta

import pytest

from tests.worker.conftest import Toys, children
from worker.supervisor import Patience

TERM, INT, KILL, STOP = signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSTOP


def gone(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True


@pytest.mark.parametrize("number", [TERM, INT])
def test_idle_workers_stop_at_once(toys: Toys, number: signal.Signals) -> None:
    supervisor = toys.start(2)
    supervisor.wait_for(lambda: toys.queue.workers() == 2, what="two idle workers")
    before = time.monotonic()
    assert supervisor.terminate(by=number) == 0
    assert time.monotonic() - before < 3
    assert toys.queue.workers() == 0


def test_a_busy_worker_is_told_to_stop_and_the_rest_of_the_queue_stays(toys: Toys) -> None:
    supervisor = toys.start()
    toys.send("obedient-1", "quick-2")
    supervisor.wait_for(lambda: toys.began("obedient-1"), what="work")
    before = time.monotonic()
    assert supervisor.terminate() == 0
    assert time.monotonic() - before < 3
    assert toys.ended("obedient-1")
    assert toys.queue.waiting_ids() == {"quick-2"}


def test_work_that_cannot_be_told_anything_is_killed_within_ten_seconds(toys: Toys) -> None:
    """The stop is still a requested one: exit 0."""
    assert Patience().stop < timedelta(seconds=9)
    supervisor = toys.start(stop=1.5)
    toys.send("stubborn-1")
    supervisor.wait_for(lambda: toys.began("stubborn-1"), what="work")
    worker = toys.worker_of("stubborn-1")
    before = time.monotonic()
    assert supervisor.terminate() == 0
    assert 1.5 < time.monotonic() - before < 3
    assert gone(worker)


def test_a_worker_that_crashes_is_replaced(toys: Toys) -> None:
    supervisor = toys.start()
    toys.send("crashing-1", "quick-2")
    supervisor.wait_for(lambda: toys.ended("quick-2"), what="the next job")
    assert toys.worker_of("crashing-1") != toys.worker_of("quick-2")
    assert supervisor.terminate() == 0


def test_a_worker_whose_interpreter_is_held_is_killed_and_replaced(toys: Toys) -> None:
    """Code that never lets the interpreter go ends the pulse."""
    supervisor = toys.start(silence=2)
    toys.send("greedy-1", "quick-2")
    supervisor.wait_for(lambda: toys.ended("quick-2"), what="the next job")


def test_a_worker_that_works_on_one_message_for_too_long_is_killed_and_replaced(toys: Toys) -> None:
    supervisor = toys.start(silence=2, JOB_TIMEOUT_SECONDS="0.5")
    toys.send("stubborn-1", "quick-2")
    supervisor.wait_for(lambda: toys.ended("quick-2"), what="the next job")


def test_a_frozen_worker_is_killed_and_replaced(toys: Toys) -> None:
    supervisor = toys.start(silence=2)
    supervisor.wait_for(lambda: toys.queue.workers() == 1, what="a worker")
    (frozen,) = children(supervisor)
    os.kill(frozen, STOP)
    supervisor.wait_for(lambda: gone(frozen), what="the end of the frozen one")
    toys.send("quick-1")
    supervisor.wait_for(lambda: toys.ended("quick-1"), what="work by another")


def test_workers_die_with_a_killed_supervisor(toys: Toys) -> None:
    supervisor = toys.start(2)
    toys.send("stubborn-1")
    supervisor.wait_for(lambda: toys.began("stubborn-1") and len(children(supervisor)) == 2, what="two workers")
    workers = children(supervisor)
    supervisor.send(KILL)
    supervisor.wait()
    deadline = time.monotonic() + 5
    while not all(gone(worker) for worker in workers):
        assert time.monotonic() < deadline


def test_unusable_settings_stop_everything_with_one_line(toys: Toys) -> None:
    (toys.folder / "unusable").touch()
    supervisor = toys.start(3)
    assert supervisor.wait() == 2
    assert supervisor.log() == "HANDLER: cannot be imported\n"


def test_a_worker_that_dies_at_once_is_started_again_ever_more_slowly(toys: Toys) -> None:
    (toys.folder / "broken").touch()
    supervisor = toys.start()
    supervisor.wait_for_log("worker.ended", times=2)
    before = time.monotonic()
    supervisor.wait_for_log("worker.ended", times=3)
    assert time.monotonic() - before > 0.9
    (toys.folder / "broken").unlink()
    toys.send("quick-1")
    supervisor.wait_for(lambda: toys.ended("quick-1"), what="work")
    assert supervisor.terminate() == 0


def test_a_worker_that_has_done_its_share_is_replaced_without_a_pause(toys: Toys) -> None:
    """In burst mode too, where that is not the end."""
    toys.send("leaving-1", "leaving-2", "leaving-3", "leaving-4", "quick-5")
    supervisor = toys.start(1, "--burst")
    assert supervisor.wait(within=timedelta(seconds=15)) == 0
    assert toys.ended("quick-5")
    assert supervisor.log().count("status=3") == 4
    assert "error" not in supervisor.log()


def test_a_burst_ends_when_the_queue_is_empty_whoever_died_on_the_way(toys: Toys) -> None:
    toys.send("quick-1", "crashing-2", "quick-3", "quick-4")
    assert toys.start(2, "--burst").wait() == 0
    assert all(toys.ended(job_id) for job_id in ("quick-1", "quick-3", "quick-4"))
