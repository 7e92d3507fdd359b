"""The user's handler of a chaos run: it writes down every call, and dies with its worker where it is told to."""

import json
import os
import time
from pathlib import Path

from worker.handler import Job

LEDGER = "handled.jsonl"
"""In the working directory of the worker; one line a call."""
LINGER_SECONDS = 0.4
DEATH = 13


def handle(job: Job) -> None:
    """Note the job with the inode of each of its files; a `poison` job kills its worker before that."""
    if "poison" in job.job_id:
        os._exit(DEATH)
    files = [[Path(file.path).name, Path(file.path).stat().st_ino, file.sha256] for file in job.artifacts]
    line = json.dumps({"job_id": job.job_id, "attempt": job.attempt, "status": job.status, "files": files})
    ledger = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, f"{line}\n".encode())  # one write: several workers append to it
    finally:
        os.close(ledger)
    if "linger" in job.job_id:
        time.sleep(LINGER_SECONDS)
