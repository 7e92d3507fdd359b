"""A worker process whose work is a toy: the job_id says what it does, and marks in a folder say how far it came."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from shared.config import Settings
from shared.errors import SettingsError
from shared.logs import Redactor
from worker.child import Work, main
from worker.pulse import Exit
from worker.stop import StopFlag


@contextmanager
def open_toy(settings: Settings, _redactor: Redactor, stop: StopFlag) -> Iterator[Work]:
    """Lend work that leaves `<job_id>.began` and `<job_id>.ended` in the storage folder."""
    folder = settings.storage_path
    if (folder / "unusable").exists():
        raise SettingsError("HANDLER", "cannot be imported")
    if (folder / "broken").exists():
        os._exit(7)

    def mark(job_id: str, what: str) -> None:
        Path(folder / f"{job_id}.{what}").write_text(str(os.getpid()), encoding="ascii")

    def work(job_id: str) -> None:
        mark(job_id, "began")
        if job_id.startswith("waiting-"):
            while not (folder / f"{job_id}.go").exists():
                stop.wait(0.05)
        behave(job_id.partition("-")[0], stop)
        mark(job_id, "ended")

    yield work


def behave(kind: str, stop: StopFlag) -> None:
    """Do as the first word of a job_id says."""
    match kind:
        case "obedient":  # works until it is told to stop
            stop.wait(60)
        case "stubborn":  # cannot be told anything
            while True:
                time.sleep(60)
        case "greedy":  # holds the interpreter: a regular expression that never lets go
            re.match(r"(a+)+$", "a" * 64 + "b")
        case "crashing":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leaving":
            os._exit(Exit.RECYCLED)
        case "raising":
            raise RuntimeError("a secret-free reason\nwith a second line")
        case "exiting":
            sys.exit(5)


if __name__ == "__main__":
    sys.exit(main(open_toy, sys.argv[1:], hard_grace=timedelta(0)))
