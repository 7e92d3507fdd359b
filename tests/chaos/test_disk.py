"""A disk that can be mounted can be filled and made read-only, and is itself again afterwards."""

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.disk import Disk

ROOT = Path(__file__).parents[2]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of some megabytes; only a root that may mount has one."""
    with Disk(tmp_path / "artifacts", needed=0) as disk:
        if not disk.special:
            pytest.skip("nothing can be mounted here")
        yield disk


def write_fails(disk: Disk) -> int | None:
    """Return the error of writing a file, None where there was none."""
    try:
        (disk.root / "file").write_bytes(b"x" * 5000)
    except OSError as error:
        return error.errno
    return None


def test_a_full_disk_takes_nothing_until_it_is_emptied(disk: Disk) -> None:
    assert write_fails(disk) is None
    (disk.root / "file").unlink()
    disk.fill()
    assert write_fails(disk) == errno.ENOSPC
    disk.empty()
    assert write_fails(disk) is None


def test_a_read_only_disk_refuses_writes_and_keeps_what_it_has(disk: Disk) -> None:
    assert write_fails(disk) is None
    assert disk.read_only()
    assert write_fails(disk) == errno.EROFS
    assert (disk.root / "file").read_bytes() == b"x" * 5000
    disk.writable()
    assert write_fails(disk) is None


def test_a_closed_disk_leaves_nothing_mounted(tmp_path: Path) -> None:
    with Disk(tmp_path / "artifacts", needed=0) as disk:
        root = disk.root
    assert not root.is_mount()


def test_what_was_mounted_ends_with_its_process(tmp_path: Path) -> None:
    """Even when it is killed, so that no run leaves a mount behind."""
    program = f"""if True:
        import os, pathlib, signal
        from tests.chaos.disk import Disk, own_mounts
        if not own_mounts():
            raise SystemExit("skip")
        with Disk(pathlib.Path({str(tmp_path / "artifacts")!r}), needed=0) as disk:
            print(disk.root.is_mount(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.stdout != "True\n":
        pytest.skip("nothing can be mounted here")
    assert (tmp_path / "artifacts").is_dir()
    assert not (tmp_path / "artifacts").is_mount()
