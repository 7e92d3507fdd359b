"""A supervisor over toy workers: `python -m tests.worker.toy_supervisor PROCESSES SILENCE STOP [--burst]`."""

import sys
from datetime import timedelta

from worker.supervisor import Patience, Supervisor

if __name__ == "__main__":
    processes, silence, stop, *rest = sys.argv[1:]
    supervisor = Supervisor(
        (sys.executable, "-m", "tests.worker.toy_child"),
        processes=int(processes),
        burst="--burst" in rest,
        patience=Patience(silence=timedelta(seconds=float(silence)), stop=timedelta(seconds=float(stop))),
    )
    sys.exit(supervisor.run())
