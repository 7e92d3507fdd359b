"""A witness of the storage during a run: whatever is visible is whole, stays, and is never replaced."""

import os
from collections.abc import Iterator
from pathlib import Path

from shared.storage.paths import MANIFEST, job_folder
from tests.chaos.jobs import PlannedJob


class Witness:
    """Looks at every published file now and then, and remembers it."""

    def __init__(self, root: Path, jobs: list[PlannedJob]) -> None:
        self._root = root
        self._sizes = {job_folder(job.job_id): {file.size for file in job.files} for job in jobs}
        self._seen: dict[str, int] = {}

    def look(self) -> Iterator[str]:
        """Yield what changed as nothing may."""
        present: dict[str, int] = {}
        for folder, sizes in self._sizes.items():
            for name, status in files_in(self._root / folder):
                path = f"{folder}/{name}"
                present[path] = status.st_ino
                if status.st_size not in sizes:
                    yield f"{path} was visible with {status.st_size} bytes"
        for path, inode in self._seen.items():
            if present.get(path) != inode:
                yield f"{path} was {'replaced' if path in present else 'removed'} after it was published"
        self._seen = present


def files_in(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the published files of a folder that may not be there yet; its manifest may be replaced."""
    try:
        with os.scandir(folder) as entries:
            yield from ((entry.name, entry.stat()) for entry in entries if entry.name != MANIFEST)
    except FileNotFoundError:
        return
