"""A file in progress under `.partial/` of a `file://` storage."""

import os
from contextlib import suppress
from pathlib import Path

from shared.storage.failures import storage_failures


class LocalPartial:
    """Writes unbuffered: the downloader's chunks are large, and what failed to be written must fail here."""

    def __init__(self, path: Path, *, stop: Path) -> None:
        # "x": a partial that was linked to its final name shares its content, so opening it again would empty both.
        self._file = path.open("xb", buffering=0)
        self._stop = stop
        self.path = path

    def write(self, data: bytes) -> None:
        """Append all of the data; the system may take it in pieces."""
        left = memoryview(data)
        with storage_failures(f"write {self.path.name}"):
            while left:
                left = left[self._file.write(left) :]

    def restart(self) -> None:
        """Forget what was written."""
        with storage_failures(f"empty {self.path.name}"):
            self._file.seek(0)
            self._file.truncate()

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


def remove_empty(folder: Path, *, stop: Path) -> None:
    """Remove a folder and its parents below `stop`; OSError at the first that is not empty."""
    while folder != stop:
        folder.rmdir()
        folder = folder.parent
