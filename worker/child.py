"""One worker process, as the supervisor starts it: `python -m worker.child PIPE PARENT [--burst]`."""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial

from shared import logs
from shared.config import Settings
from shared.errors import SettingsError
from shared.logs import Redactor
from shared.orphan import die_with
from shared.queue import TIMEOUT_GRACE
from shared.storage.recognition import WrongStorageError
from worker.pulse import Exit, Pulse
from worker.rq_worker import Ended, JobWorker
from worker.stop import StopFlag
from worker.tasks import attempt
from worker.wiring import open_pipeline

MAX_MESSAGES = 2_000
"""A process is replaced after so many messages, so that what leaks in a handler or a library stays bounded."""
HARD_GRACE = 2 * TIMEOUT_GRACE
"""A message worked on for this much longer than JOB_TIMEOUT_SECONDS cannot be stopped from inside: no more pulse."""

Work = Callable[[str], None]
"""Works on one job_id."""
OpenWork = Callable[[Settings, Redactor, StopFlag], AbstractContextManager[Work]]
"""Lends the work that the settings ask for; raises SettingsError."""


def main(open_work: OpenWork, arguments: Sequence[str], *, hard_grace: timedelta = HARD_GRACE) -> int:
    """Work until told to stop, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pipe", type=int)
    parser.add_argument("parent", type=int)
    parser.add_argument("--burst", action="store_true")
    options = parser.parse_args(arguments)
    if not die_with(options.parent, by=signal.SIGKILL):
        return Exit.ORPHANED

    stop = StopFlag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    try:
        settings = Settings.load("DATABASE_URL", "REDIS_URL")
        redactor = logs.configure(settings, process="worker")
        with open_work(settings, redactor, stop) as work:
            worker = JobWorker(settings, work=work, stop=stop)
            limit: timedelta = settings.seconds("job_timeout") + hard_grace
            Pulse(options.pipe, alive=lambda: worker.busy_for() < limit).start()
            ended = worker.run(burst=options.burst, max_messages=MAX_MESSAGES)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return Exit.WRONG_STORAGE if isinstance(error, WrongStorageError) else Exit.SETTINGS
    return Exit.RECYCLED if ended is Ended.RECYCLED else Exit.FINISHED


@contextmanager
def open_pipeline_work(settings: Settings, redactor: Redactor, stop: StopFlag) -> Iterator[Work]:
    """Lend the pipeline as work."""
    name = f"{socket.gethostname()}.{os.getpid()}"
    with open_pipeline(settings, redactor=redactor, stop=stop, name=name) as pipeline:
        yield partial(attempt, pipeline)


if __name__ == "__main__":
    sys.exit(main(open_pipeline_work, sys.argv[1:]))
