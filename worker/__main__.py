"""`python -m worker`: RQ workers under one supervisor."""

import argparse
import sys
from collections.abc import Sequence

from shared import logs
from shared.config import Settings
from shared.errors import SettingsError
from worker.supervisor import Supervisor

CHILD = (sys.executable, "-P", "-m", "worker.child")
"""`-P`: a folder of the user's that is named `worker` or `shared` must not be run in place of ours."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m worker",
        description="Work on claimed jobs.",
        epilog="example: python -m worker --processes 4",
    )
    parser.add_argument("--processes", type=positive, default=1, help="how many workers (default 1)")
    parser.add_argument("--burst", action="store_true", help="exit when the queue is empty")
    options = parser.parse_args(arguments)
    try:
        settings = Settings.load("DATABASE_URL", "REDIS_URL")
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logs.configure(settings, process="worker")
    return Supervisor(CHILD, processes=options.processes, burst=options.burst).run()


def positive(text: str) -> int:
    """Read a count of at least 1."""
    count = int(text)
    if count < 1:
        raise ValueError
    return count


if __name__ == "__main__":
    sys.exit(main())
