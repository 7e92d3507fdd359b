"""Agents work side by side: none harms or delays another, and all of them stop."""

import threading
import time
from datetime import timedelta

from structlog.testing import capture_logs

from scheduler import loop
from scheduler.agent import Agent, Duty
from shared.errors import QueueUnavailableError, StoreUnavailableError
from tests.scheduler.fakes import NEVER, seconds

SOON = 10.0
HOUR = timedelta(hours=1)


class Script:
    """A duty that meets these problems one after the other, then none."""

    def __init__(self, *problems: Exception | None) -> None:
        self._problems = list(problems)
        self.rounds = 0

    def __call__(self, stop: threading.Event) -> None:
        """Do the next round."""
        del stop
        self.rounds += 1
        problem = self._problems.pop(0) if self._problems else None
        if problem is not None:
            raise problem


def counting(done: threading.Event, *, rounds: int) -> Duty:
    seen: list[None] = []

    def duty(_stop: threading.Event) -> None:
        seen.append(None)
        if len(seen) >= rounds:
            done.set()

    return duty


def waiting_for(event: threading.Event) -> Duty:
    def duty(_stop: threading.Event) -> None:
        event.wait(SOON)

    return duty


def test_an_outage_is_told_of_when_it_begins_and_when_it_ends() -> None:
    """Not at every round, but another problem during it is told of too."""
    away = [StoreUnavailableError("away") for _ in range(3)]
    agent = Agent("sweep", Script(None, *away, QueueUnavailableError("gone"), away[0]), every=HOUR)
    with capture_logs() as lines:
        for _ in range(8):
            agent.perform(NEVER)
    assert [(line["event"], line["log_level"], line.get("error")) for line in lines] == [
        ("duty.failed", "warning", "away"),
        ("duty.failed", "warning", "gone"),
        ("duty.recovered", "info", None),
    ]


def test_a_second_outage_is_told_of_again() -> None:
    """What was said is forgotten once all is well."""
    agent = Agent("sweep", Script(StoreUnavailableError("away"), None, StoreUnavailableError("away")), every=HOUR)
    with capture_logs() as lines:
        for _ in range(4):
            agent.perform(NEVER)
    assert [line["event"] for line in lines] == ["duty.failed", "duty.recovered"] * 2


def test_a_defect_is_an_error_with_its_traceback_and_ends_nothing() -> None:
    """Even an error nobody thought of leaves the agent at work."""
    script = Script(ZeroDivisionError("x"), ZeroDivisionError("x"))
    agent = Agent("sweep", script, every=HOUR)
    with capture_logs() as lines:
        assert isinstance(agent.perform(NEVER), ZeroDivisionError)
        agent.perform(NEVER)
        assert agent.perform(NEVER) is None
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("duty.crashed", "error"),
        ("duty.recovered", "info"),
    ]
    assert isinstance(lines[0]["exc_info"], ZeroDivisionError)


def test_a_failing_or_hanging_duty_leaves_the_others_at_work() -> None:
    """Each agent has a thread of its own."""
    go_on, done = threading.Event(), threading.Event()
    agents = [
        Agent("failing", Script(*[StoreUnavailableError("away")] * 1000), every=seconds(0.01)),
        Agent("hanging", waiting_for(go_on), every=seconds(0.01)),
        Agent("working", counting(done, rounds=5), every=seconds(0.01)),
    ]

    def wait_for_stop() -> None:
        assert done.wait(SOON)
        go_on.set()

    loop.run(agents, wait_for_stop=wait_for_stop)


def test_a_failed_duty_is_repeated_sooner() -> None:
    """So that an outage is over soon after its end, however long the interval."""
    done = threading.Event()

    def fail_once(_stop: threading.Event) -> None:
        if not failed:
            failed.append(None)
            raise StoreUnavailableError("away")
        done.set()

    failed: list[None] = []
    loop.run([Agent("sweep", fail_once, every=HOUR, retry=seconds(0.01))], wait_for_stop=lambda: done.wait(SOON))
    assert done.is_set()


def test_a_retry_never_waits_longer_than_the_interval() -> None:
    """A short interval is meant."""
    done = threading.Event()
    problems = Script(*[StoreUnavailableError("away")] * 5)

    def duty(stop: threading.Event) -> None:
        if problems.rounds == 5:
            done.set()
        problems(stop)

    loop.run([Agent("sweep", duty, every=seconds(0.01), retry=HOUR)], wait_for_stop=lambda: done.wait(SOON))
    assert done.is_set()


def test_stopping_ends_the_pause_between_rounds() -> None:
    """Nobody waits for the next prune."""
    done = threading.Event()
    before = time.monotonic()
    with capture_logs() as lines:
        loop.run([Agent("prune", counting(done, rounds=1), every=HOUR)], wait_for_stop=lambda: done.wait(SOON))
    assert time.monotonic() - before < SOON / 2
    assert [line["event"] for line in lines] == ["scheduler.started", "scheduler.stopped"]


def test_a_duty_that_does_not_end_is_abandoned_by_name() -> None:
    """A hung server holds up no shutdown."""
    go_on = threading.Event()
    with capture_logs() as lines:
        loop.run([Agent("hanging", waiting_for(go_on), every=HOUR)], wait_for_stop=lambda: None)
    go_on.set()
    assert [line["duties"] for line in lines if line["event"] == "scheduler.abandoned"] == [["hanging"]]


def test_once_performs_each_duty_once_whatever_fails() -> None:
    """The failed ones are named."""
    scripts = [Script(), Script(StoreUnavailableError("away")), Script()]
    agents = [Agent(name, duty, every=HOUR) for name, duty in zip(("a", "b", "c"), scripts, strict=True)]
    failed = loop.run_once(agents)
    assert [script.rounds for script in scripts] == [1, 1, 1]
    assert {name: str(error) for name, error in failed.items()} == {"b": "away"}
