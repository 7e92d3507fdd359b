"""The folder `.dev` of a checkout: who uses it, and what lies in it."""

import fcntl
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shared.sandbox.wheels import SandboxError

FOLDER = Path(".dev")
LOCK = "lock"
ENV = "env"


@contextmanager
def dev_folder(folder: Path = FOLDER) -> Iterator[Path]:
    """Lend the folder, emptied, to one process at a time; files and logs stay there at the end, the env file does not.

    Raises SandboxError when another process has it.
    """
    folder = folder.absolute()
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / LOCK).open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SandboxError(f"another sume-jobs dev runs here; it holds {folder / LOCK}") from None
        empty(folder)
        try:
            yield folder
        finally:
            (folder / ENV).unlink(missing_ok=True)


def empty(folder: Path) -> None:
    """Delete what an earlier run left: its database is gone, so its files belong to no job."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def write_env(folder: Path, environment: Mapping[str, str]) -> Path:
    """Write a file for a shell to read, for its owner's eyes alone, which also puts `sume-jobs` on the PATH."""
    path = folder / ENV
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()]
    lines.append(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"\n')
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return path
