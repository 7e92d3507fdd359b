"""A storage on real file systems that are full, or that are two; they take a root that may mount."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from shared.errors import RetryableError
from shared.storage.local import LocalStorage
from tests.storage.forgetful import ForgetfulStorage

MIB = 1024 * 1024
Mount = Callable[[Path], None]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Return a mounter of small file systems, which are gone when the test ends."""
    with ExitStack() as mounted:

        def mount(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tests", str(folder)]
            if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
                pytest.skip("may not mount")
            mounted.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)

        yield mount


def test_a_full_disk_leaves_nothing_half_and_is_used_again(tmp_path: Path, mount: Mount) -> None:
    """No space is `storage_failed` in the system's own words; what was being written goes, and makes room."""
    mount(tmp_path / "artifacts")
    with ForgetfulStorage(tmp_path / "artifacts") as storage:
        partial = storage.start("job_demo", token=uuid4(), name="00")
        with pytest.raises(RetryableError, match="could not write 00: No space left on device") as caught:
            partial.write(bytes(2 * MIB))
        assert caught.value.reason == "storage_failed"
        assert storage.free_bytes() == 0
        partial.discard()
        assert storage.free_bytes() > MIB // 2
        partial = storage.start("job_demo", token=uuid4(), name="00")
        partial.write(b"whole")
        assert storage.publish(partial, "job_demo/00-a.png")


def test_partials_on_another_mount_cannot_be_published(tmp_path: Path, mount: Mount) -> None:
    """A copy would not be atomic: it is refused, saying what to do."""
    mount(tmp_path / "artifacts" / "job_demo")
    with ForgetfulStorage(tmp_path / "artifacts") as storage:
        partial = storage.start("job_demo", token=uuid4(), name="00")
        partial.write(b"whole")
        with pytest.raises(RetryableError, match="two file systems; STORAGE_URL must be one") as caught:
            storage.publish(partial, "job_demo/00-a.png")
        assert caught.value.reason == "storage_failed"
        assert list((tmp_path / "artifacts" / "job_demo").iterdir()) == []


def test_a_link_across_file_systems_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody may mount."""

    def refuse(_source: Path, _name: Path) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(RetryableError, match="two file systems"):
        LocalStorage(tmp_path).probe()


def test_free_room_is_that_of_the_storages_own_file_system(tmp_path: Path, mount: Mount) -> None:
    """Also before its root is made."""
    mount(tmp_path / "mounted")
    assert 0 < LocalStorage(tmp_path / "mounted" / "not" / "made" / "yet").free_bytes() <= MIB
    assert LocalStorage(tmp_path).free_bytes() > MIB
