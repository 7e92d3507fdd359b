"""The size and SHA-256 of a file that lies on a disk."""

import hashlib
import os
from pathlib import Path

from shared.storage.storage import Check, Found

CHUNK = 256 * 1024


def measure(path: Path, *, check: Check) -> Found | None:
    """Read a whole file; None where there is none."""
    digest, size, buffer = hashlib.sha256(), 0, memoryview(bytearray(CHUNK))
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    with file:
        while count := file.readinto(buffer):
            check()
            digest.update(buffer[:count])
            size += count
        return Found(bytes=size, sha256=digest.hexdigest(), identity=identity(os.fstat(file.fileno())))


def identity(status: os.stat_result) -> str:
    """Return what changes with the file or its content, and stays the same while it is moved."""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
