"""The end of what killed workers left under `.partial/`."""

import shutil
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from shared.storage.storage import LiveTokens


def remove_ended_leases(partials: Path, *, live: LiveTokens) -> int:
    """Remove `.partial/<folder>/<token>` of every lease that ended; names that are no token are left alone."""
    found = {path: token for path in sorted(partials.glob("*/*")) if (token := token_of(path)) is not None}
    if not found:
        return 0
    alive = set(live(set(found.values())))  # only now: see Storage.sweep_partials
    ended = [path for path, token in found.items() if token not in alive]
    for path in ended:
        with suppress(FileNotFoundError):  # another sweep, or its own worker, was faster
            shutil.rmtree(path)
        with suppress(OSError):  # not empty: another lease of the job works there
            path.parent.rmdir()
    return len(ended)


def token_of(path: Path) -> UUID | None:
    """Return the lease token a folder is named after."""
    try:
        token = UUID(path.name)
    except ValueError:
        return None
    return token if str(token) == path.name else None
