"""The clock of a process jumps while it runs, and only the clock on the wall."""

import struct
import subprocess
import sys
from pathlib import Path

from shared.config import child_environment

CLOCKWORK = Path(__file__).parent / "clockwork"
PROGRAM = """
import datetime, sys, time
from datetime import UTC
def read():
    print(time.time(), datetime.datetime.now(UTC).timestamp(), time.monotonic(), flush=True)
    return sys.stdin.readline()
read()
read()
assert isinstance(datetime.datetime.now(), datetime.datetime)
assert isinstance(datetime.datetime(2026, 1, 1, tzinfo=UTC), datetime.datetime)
"""


def test_a_clock_jumps_while_its_process_runs(tmp_path: Path) -> None:
    """time.time and datetime.now agree; the monotonic clock stays."""
    offset = tmp_path / "clock"
    offset.write_bytes(struct.pack("d", 0))
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        env=child_environment(PYTHONPATH=str(CLOCKWORK), CHAOS_CLOCK=str(offset)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    before = [float(word) for word in process.stdout.readline().split()]
    with offset.open("r+b") as file:
        file.write(struct.pack("d", -3600))
    process.stdin.write("\n")
    process.stdin.flush()
    after = [float(word) for word in process.stdout.readline().split()]
    process.communicate("\n", timeout=30)
    assert process.returncode == 0
    moved = [later - earlier for earlier, later in zip(before, after, strict=True)]
    assert -3600 <= moved[0] < -3590
    assert -3600 <= moved[1] < -3590
    assert 0 <= moved[2] < 10
