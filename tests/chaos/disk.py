"""The storage's own small file system, which can be filled and made read-only; that takes a root that may mount."""

import ctypes
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

SPARE = 64 * 1024 * 1024
FLOOR = 8 * 1024 * 1024
BALLAST = "ballast"
CLONE_NEWNS = 0x00020000
REMOUNT_WITHIN_SECONDS = 5
LOOK_SECONDS = 0.02


class Disk:
    """A tmpfs at `root` where it can be had, else a plain folder of which `special` is False."""

    def __init__(self, root: Path, *, needed: int) -> None:
        self.root = root
        self.special = False
        self.floor = FLOOR
        self._size = needed * 2 + SPARE

    def start(self) -> Self:
        """Mount it."""
        self.root.mkdir()
        self.special = os.geteuid() == 0 and mount("-t", "tmpfs", "-o", f"size={self._size}", "chaos", self.root)
        return self

    def fill(self) -> None:
        """Leave not one byte free."""
        with (self.root / BALLAST).open("wb", buffering=0) as ballast:  # a buffer would fail once more at the close
            with suppress(OSError):
                os.posix_fallocate(ballast.fileno(), 0, self._free())
            with suppress(OSError):
                while True:
                    ballast.seek(0, os.SEEK_END)
                    ballast.write(bytes(4096))

    def empty(self) -> None:
        """Give the space back."""
        (self.root / BALLAST).unlink(missing_ok=True)

    def read_only(self) -> bool:
        """Refuse every write from now on; False where a file stayed open for writing too long."""
        deadline = time.monotonic() + REMOUNT_WITHIN_SECONDS
        while not mount("-o", "remount,ro", self.root):
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def writable(self) -> None:
        """Take writes again."""
        mount("-o", f"remount,rw,size={self._size}", self.root)

    def close(self) -> None:
        """Unmount it."""
        if self.special:
            subprocess.run(["umount", "-l", str(self.root)], check=False, capture_output=True)  # noqa: S607
            self.special = False

    def _free(self) -> int:
        status = os.statvfs(self.root)
        return status.f_bavail * status.f_frsize

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def own_mounts() -> bool:
    """Have the kernel unmount whatever this process mounts from now on when it and all it started have ended.

    To be called before any thread starts; False where it cannot be had, and then only `close` unmounts.
    """
    if sys.platform != "linux" or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        return False
    return mount("--make-rprivate", "/")


def mount(*arguments: str | Path) -> bool:
    """Whether `mount` could do it."""
    try:
        done = subprocess.run(["mount", *map(str, arguments)], check=False, capture_output=True)  # noqa: S607
    except OSError:
        return False
    return done.returncode == 0
