"""Whether the worker will be able to import the user's handler."""

import subprocess
import sys
from datetime import timedelta

PATIENCE = timedelta(seconds=60)
"""Importing a handler may load a whole framework."""

# The worker's own loader, in a process of its own: a handler's module may print, hang or exit while it is imported.
SCRIPT = """
import sys
from shared.config import Settings
from shared.errors import SettingsError
from shared.logs import Redactor
from worker.handler import load_handler

settings = Settings.load()
try:
    load_handler(settings.handler, redactor=Redactor(settings.secret_values()))
except SettingsError as error:
    sys.exit(str(error))
"""


def handler_problem(*, patience: timedelta = PATIENCE) -> str | None:
    """Return why HANDLER cannot be imported in the working directory, None when it can."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=patience.total_seconds(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"importing it takes more than {patience.total_seconds():.0f} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return (lines[-1] if lines else f"importing it ended with {done.returncode}").removeprefix("HANDLER: ")
