"""The watch that keeps a child from outliving the process that started it.

A shell in a session of its own holds the reading end of a pipe. When the starting process ends in any way,
SIGKILL included, the pipe ends and the shell signals the child's process group. Chosen over
PR_SET_PDEATHSIG because that is Linux alone, fires when the starting *thread* ends, is cleared by a change
of user, and wants Python code between fork and exec, which can deadlock in a process with threads (every
process with a simulated Sume has some). Verified on Linux; macOS runs the same code, not verified there.
"""

import os
import signal
import subprocess
from pathlib import Path

GRACE_SECONDS = 10
WATCH = """
read -r group || exit 0
while read -r _; do :; done
kill -s "$1" -- "-$group" && kill -s CONT -- "-$group"
waited=0
while [ "$waited" -lt "$2" ] && kill -s 0 -- "-$group"; do sleep 1; waited=$((waited + 1)); done
kill -s KILL -- "-$group"
[ -z "$3" ] || rm -rf -- "$3"
"""


class Guard:
    """Start it before the child, tell it the child's group at once, dismiss it when the child has ended."""

    def __init__(self, *, farewell: signal.Signals, scratch: Path | None) -> None:
        """Prepare to send `farewell`, SIGKILL to what is left after GRACE_SECONDS, and to delete the scratch folder."""
        words = [farewell.name.removeprefix("SIG"), str(GRACE_SECONDS), str(scratch or "")]
        reading, self._pipe = os.pipe()
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "guard", *words],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(reading)

    def watch(self, group: int) -> None:
        """Name the process group that must not outlive us."""
        os.write(self._pipe, f"{group}\n".encode())

    def dismiss(self) -> None:
        """Stop watching; the group is left alone."""
        self._shell.kill()
        self._shell.wait()
        os.close(self._pipe)
