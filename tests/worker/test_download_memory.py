"""The memory that downloads take."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.scripted_host import Request, ScriptedHost, head

MIB = 1024 * 1024
SIZE = 128 * MIB
AT_ONCE = 4


def large(_request: Request, connection: socket.socket) -> None:
    """Send a large body."""
    connection.sendall(head(200, content_length=SIZE))
    block = b"x" * MIB
    for _ in range(SIZE // MIB):
        connection.sendall(block)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Four files at once, half a GiB in all, pass through less than 150 MB."""
    with ScriptedHost([large]) as host:
        command = [sys.executable, "-m", "tests.worker.download_peak", f"{host.url}/a.bin", str(tmp_path), str(AT_ONCE)]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    peak, received = map(int, done.stdout.split())
    assert received == AT_ONCE * SIZE
    assert peak < 150_000
