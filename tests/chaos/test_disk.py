"""A disk that can be mounted can be filled and made read-only, and is itself again afterwards."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.disk import Disk


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
