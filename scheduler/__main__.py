"""The command `python -m scheduler`."""

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from contextvars import copy_context
from datetime import timedelta
from functools import partial

from scheduler import loop
from scheduler.agent import Agent
from scheduler.circuits import CircuitKeeper
from scheduler.cleaner import Cleaner
from scheduler.look import Looker, PollTimes
from scheduler.poller import Poller
from scheduler.pruner import Pruner
from scheduler.sweeper import Sweeper
from scheduler.waiting import WaitWatch
from scheduler.watchman import Watchman
from shared import logs
from shared.alerts import open_alerts
from shared.claims import open_store
from shared.claims.store import Store
from shared.config import Settings
from shared.errors import SettingsError, SumeJobsError
from shared.intake import Intake
from shared.queue import open_queue
from shared.storage import open_storage
from shared.storage.recognition import StorageGuard, WrongStorageError
from shared.sume.api import SumeApi

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
RETRY = timedelta(seconds=2)
"""A failed sweep or poll is repeated this soon, so that an outage is over within 10 s of its end."""
PRUNE_EVERY = timedelta(hours=1)
SWEEP_PARTIALS_EVERY = timedelta(seconds=30)
BEAT_EVERY = timedelta(seconds=15)
WATCH_EVERY = timedelta(seconds=10)
WATCH_WAITS_EVERY = timedelta(minutes=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform all duties until SIGTERM or SIGINT, or each once; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m scheduler",
        description="Queue lost jobs again, ask Sume about expected ones, prune and clean up.",
        epilog="example: python -m scheduler --once",
    )
    parser.add_argument("--once", action="store_true", help="perform each duty once and exit")
    options = parser.parse_args(arguments)
    if not options.once:
        # Blocked before any thread starts, so that the signals wait for sigwait, which needs no handler.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        settings = Settings.load("DATABASE_URL", "REDIS_URL")
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logs.configure(settings, process="scheduler")
    try:
        with ExitStack() as opened:
            return work(settings, opened, once=options.once)
    except WrongStorageError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def work(settings: Settings, opened: ExitStack, *, once: bool) -> int:
    """Perform the duties and return the exit status; raises WrongStorageError as soon as that is known."""
    store = opened.enter_context(closing(open_store(settings)))
    guard = StorageGuard(open_storage(settings), store)
    agents = open_agents(settings, opened, store=store, guard=guard)
    if once:
        guard.try_recognise()
        return report(loop.run_once(agents))
    over = threading.Event()
    opened.callback(over.set)
    watch = partial(guard.watch, over, refused=lambda: os.kill(os.getpid(), signal.SIGTERM))
    threading.Thread(target=copy_context().run, args=(watch,), name="storage", daemon=True).start()
    loop.run(agents, wait_for_stop=lambda: signal.sigwait(STOP_SIGNALS))
    if guard.refused is not None:
        raise guard.refused
    return 0


def open_agents(settings: Settings, opened: ExitStack, *, store: Store, guard: StorageGuard) -> list[Agent]:
    """Connect the duties with what they need, without connecting to anything yet; `opened` closes it."""
    queue = opened.enter_context(closing(open_queue(settings)))
    intake = Intake(store, queue)
    api = None
    if settings.sume_api_key is None:
        logs.get_logger().warning("polling.disabled", why="SUME_API_KEY is not set; expected jobs are not asked for")
    else:
        key = settings.sume_api_key.get_secret_value()
        api = opened.enter_context(closing(SumeApi(settings.sume_api_base_url, api_key=key)))
    times = PollTimes.of(settings)
    alerts = open_alerts(settings, store)
    looker = Looker(store, intake, alerts, api=api, base_url=settings.sume_api_base_url, times=times)
    poller = opened.enter_context(closing(Poller(store, looker, times=times)))
    sweeper = Sweeper(store, queue, intake, stale=settings.seconds("claim_stale"))
    circuits = CircuitKeeper(store, within=settings.seconds("claim_stale"), again=settings.seconds("retry_max"))
    pruner = Pruner(store, older_than=timedelta(days=settings.retention_days))
    cleaner = Cleaner(store, queue, open_storage(settings), guard)
    watchman = Watchman(store, queue, alerts)
    waits = WaitWatch(store, queue, alerts)
    name = f"{socket.gethostname()}.{os.getpid()}"
    every = settings.seconds("sweep_interval")
    return [
        Agent("circuits", circuits.tend, every=every, retry=RETRY),  # before the sweep, which sends what is due
        Agent("sweep", sweeper.sweep, every=every, retry=RETRY),
        Agent("poll", poller.poll, every=every, retry=RETRY),
        Agent("prune", pruner.prune, every=PRUNE_EVERY),
        Agent("clean_registries", cleaner.clean_registries, every=every),
        Agent("sweep_partials", cleaner.sweep_partials, every=SWEEP_PARTIALS_EVERY),
        Agent("beat", lambda _stop: store.beat("scheduler", name), every=BEAT_EVERY, retry=RETRY),
        Agent("watch", watchman.watch, every=WATCH_EVERY, retry=RETRY),
        Agent("watch_waits", waits.watch, every=WATCH_WAITS_EVERY, retry=RETRY),
    ]


def report(failed: Mapping[str, Exception]) -> int:
    """Say on one line which duties failed and why; return the exit status."""
    if not failed:
        return 0
    reasons = (
        f"{name} ({error if isinstance(error, SumeJobsError) else type(error).__name__})"
        for name, error in failed.items()
    )
    sys.stderr.write(f"failed: {', '.join(reasons)}\n")
    return 1


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # a look that hangs is abandoned: the interpreter would wait for its thread
