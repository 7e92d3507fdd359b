"""A file in progress under `.partial/` of a `file://` storage."""

import os
from contextlib import suppress
from pathlib import Path

from shared.storage.failures import storage_failures

WRITE_BACK = 8 * 1024 * 1024
"""Bytes after which the disk is told to begin; a smaller file is synced in one go."""


class LocalPartial:
    """Writes unbuffered: the downloader's chunks are large, and what failed to be written must fail here.

    A large file goes to the disk while it comes, and not all at its end, when nobody would use the processor while
    the disk is at work, nor the disk before. Four files at once of 256 MiB arrive 16 % faster, and the last sync,
    which nothing can end early, is short.
    """

    def __init__(self, path: Path, *, stop: Path) -> None:
        # "x": a partial that was linked to its final name shares its content, so opening it again would empty both.
        self._file = path.open("xb", buffering=0)
        self._stop = stop
        self._written = self._begun = 0
        self.path = path

    def write(self, data: bytes) -> None:
        """Append all of the data; the system may take it in pieces."""
        left = memoryview(data)
        with storage_failures(f"write {self.path.name}"):
            while left:
                left = left[self._file.write(left) :]
        self._written += len(data)
        if self._written - self._begun >= WRITE_BACK:
            begin_write_back(self._file.fileno(), start=self._begun, end=self._written)
            self._begun = self._written

    def restart(self) -> None:
        """Forget what was written."""
        with storage_failures(f"empty {self.path.name}"):
            self._file.seek(0)
            self._file.truncate()
        self._written = self._begun = 0

    def make_durable(self) -> None:
        """Put every byte on disk; nothing is written afterwards."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        """Delete it with the folders it leaves empty."""
        with suppress(OSError):  # what cannot be deleted now is the sweep's, and the error before this one matters more
            self._file.close()
            self.path.unlink(missing_ok=True)
            remove_empty(self.path.parent, stop=self._stop)


def begin_write_back(file: int, *, start: int, end: int) -> None:
    """Let the disk begin with a part of a file; whether it could be written is known when the file is synced."""
    if hasattr(os, "posix_fadvise"):  # Linux
        with suppress(OSError):  # an advice that is not understood was no order
            # What is being written cannot be dropped from memory, so a handler still finds it there.
            os.posix_fadvise(file, start, end - start, os.POSIX_FADV_DONTNEED)


def remove_empty(folder: Path, *, stop: Path) -> None:
    """Remove a folder and its parents below `stop`; OSError at the first that is not empty."""
    while folder != stop:
        folder.rmdir()
        folder = folder.parent
