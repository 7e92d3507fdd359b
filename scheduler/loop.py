"""All agents of one scheduler, each in a thread of its own, so that none waits for another."""

import contextvars
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from scheduler.agent import Agent
from shared.logs import get_logger

log = get_logger()

STOP_WITHIN = timedelta(seconds=7)


def run(agents: Sequence[Agent], *, wait_for_stop: Callable[[], object], stop_within: timedelta = STOP_WITHIN) -> None:
    """Let the agents work until `wait_for_stop` returns, then wait at most `stop_within` for them to end.

    What an agent still does then is abandoned: each write is one statement, and whatever was not written is due
    again, so the caller may end the process at any moment.
    """
    stop = threading.Event()
    threads = [
        # A copy of the context, so that their log lines name the process too.
        threading.Thread(target=contextvars.copy_context().run, args=(agent.run, stop), name=agent.name, daemon=True)
        for agent in agents
    ]
    for thread in threads:
        thread.start()
    log.info("scheduler.started")
    wait_for_stop()
    stop.set()
    deadline = time.monotonic() + stop_within.total_seconds()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    abandoned = [thread.name for thread in threads if thread.is_alive()]
    if abandoned:
        log.warning("scheduler.abandoned", duties=abandoned)
    log.info("scheduler.stopped")


def run_once(agents: Sequence[Agent]) -> Mapping[str, Exception]:
    """Perform each duty once, one after the other; return what failed, by name of the duty."""
    never = threading.Event()
    outcomes = {agent.name: agent.perform(never) for agent in agents}
    return {name: error for name, error in outcomes.items() if error is not None}
