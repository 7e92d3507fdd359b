"""Tests of the storage behind `file://`: whole, durable, once, or not at all (I8)."""

import hashlib
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from shared.errors import LeaseLostError, RetryableError
from shared.event import StoredArtifact
from shared.storage import open_storage
from shared.storage.local import LocalStorage
from shared.storage.local_partial import LocalPartial
from shared.storage.storage import never_stop
from tests.conftest import MakeSettings
from tests.storage.forgetful import ForgetfulStorage

PATH = "job_demo/00-picture.png"
TOKEN = UUID("00000000-0000-4000-8000-000000000001")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The storage root, not made yet."""
    return tmp_path / "mount" / "artifacts"


@pytest.fixture
def storage(root: Path) -> Iterator[LocalStorage]:
    """A storage whose root does not exist yet."""
    with ForgetfulStorage(root) as storage:
        yield storage


def begin(storage: LocalStorage, data: bytes, *, name: str = "00", token: UUID = TOKEN) -> LocalPartial:
    """Write a partial."""
    partial = storage.start("job_demo", token=token, name=name)
    partial.write(data)
    return partial


def visible(root: Path) -> dict[str, bytes]:
    """Every file a user of the storage sees."""
    files = (path for path in root.rglob("*") if path.is_file())
    shown = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return {name: data for name, data in shown.items() if not name.startswith(".")}


def record(data: bytes) -> StoredArtifact:
    """The record of a file published with this content."""
    return StoredArtifact(index=0, path=PATH, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def test_settings_open_it(make_settings: MakeSettings, tmp_path: Path) -> None:
    """`STORAGE_URL=file://…` opens the storage at that folder."""
    storage = open_storage(make_settings())
    storage.publish(storage.start("job_demo", token=TOKEN, name="00"), PATH)
    assert (tmp_path / "artifacts" / PATH).is_file()


def test_a_partial_is_not_visible(storage: LocalStorage, root: Path) -> None:
    """Work in progress lies under `.partial/` alone."""
    begin(storage, b"half")
    assert visible(root) == {}
    assert [path.name for path in root.iterdir()] == [".partial"]


def test_publishing_shows_the_whole_file(storage: LocalStorage, root: Path) -> None:
    """A published file is there whole and nothing is left under `.partial/`."""
    assert storage.publish(begin(storage, b"whole"), PATH)
    assert visible(root) == {PATH: b"whole"}
    assert list((root / ".partial").iterdir()) == []


def test_a_restarted_partial_forgets(storage: LocalStorage, root: Path) -> None:
    """After a restart only what was written since is published."""
    partial = begin(storage, b"a long beginning")
    partial.restart()
    partial.write(b"new")
    storage.publish(partial, PATH)
    assert visible(root) == {PATH: b"new"}


def test_a_published_file_is_never_replaced(storage: LocalStorage, root: Path) -> None:
    """A worker that slept past its lease publishes nothing over what is there (I8)."""
    late = begin(storage, b"late", token=uuid4())
    assert storage.publish(begin(storage, b"first"), PATH)
    assert not storage.publish(late, PATH)
    assert visible(root) == {PATH: b"first"}
    late.discard()
    assert list((root / ".partial").iterdir()) == []


def test_a_link_whose_answer_was_lost_counts(storage: LocalStorage, root: Path) -> None:
    """NFS may say "exists" about the link it has just made."""
    partial = begin(storage, b"whole")
    (root / "job_demo").mkdir()
    (root / PATH).hardlink_to(partial.path)
    assert storage.publish(partial, PATH)
    assert visible(root) == {PATH: b"whole"}


def test_a_published_partial_is_never_opened_again(storage: LocalStorage, root: Path) -> None:
    """A partial left behind after its link shares the published content: starting it again must not empty it."""
    partial = begin(storage, b"whole")
    (root / "job_demo").mkdir()
    (root / PATH).hardlink_to(partial.path)
    with pytest.raises(RetryableError):
        storage.start("job_demo", token=TOKEN, name="00")
    assert visible(root) == {PATH: b"whole"}


def test_others_may_read_what_the_umask_lets_them(storage: LocalStorage, root: Path) -> None:
    """Published files are for the user's other services, not for their owner alone."""
    before = os.umask(0o022)
    try:
        storage.publish(begin(storage, b"whole"), PATH)
    finally:
        os.umask(before)
    assert (root / PATH).stat().st_mode & 0o777 == 0o644
    assert (root / "job_demo").stat().st_mode & 0o777 == 0o755


def test_a_file_is_on_disk_before_it_has_its_name(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is synced, then linked, then its folder and the folder's own name are synced (I8)."""
    partial = begin(storage, b"whole")
    steps = watch_steps(monkeypatch, file=partial.path, root=root)
    storage.publish(partial, PATH)
    assert steps == ["file", "link", "folder", "root"]


def test_a_manifest_makes_the_name_of_the_file_before_it_durable(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its own: each is on disk before it has its name, and their folder is synced once."""
    partial, manifest = begin(storage, b"whole"), begin(storage, b"{}", name="manifest")
    steps = watch_steps(monkeypatch, file=partial.path, manifest=manifest.path, root=root)
    storage.publish(partial, PATH, before_manifest=True)
    storage.replace(manifest, "job_demo/manifest.json")
    assert steps == ["file", "link", "manifest", "rename", "folder", "root"]


def watch_steps(monkeypatch: pytest.MonkeyPatch, **known: Path) -> list[str]:
    """Return a list that fills with what is synced, linked and renamed; a folder not known by name is "folder"."""
    names = {path.stat().st_ino: name for name, path in known.items()}
    steps: list[str] = []
    fsync, link, rename = os.fsync, os.link, os.replace

    def watched_fsync(descriptor: int) -> None:
        steps.append(names.get(os.fstat(descriptor).st_ino, "folder"))
        fsync(descriptor)

    def watched_link(existing: Path, name: Path) -> None:
        steps.append("link")
        link(existing, name)

    def watched_rename(existing: Path, name: Path) -> None:
        steps.append("rename")
        rename(existing, name)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "link", watched_link)
    monkeypatch.setattr(os, "replace", watched_rename)
    return steps


def test_the_manifest_is_replaced_whole(storage: LocalStorage, root: Path) -> None:
    """`replace` puts a new content in place of the old one."""
    path = "job_demo/manifest.json"
    assert storage.read(path) is None
    storage.replace(begin(storage, b"old", name="manifest"), path)
    storage.replace(begin(storage, b"new", name="manifest"), path)
    assert storage.read(path) == b"new"
    assert visible(root) == {path: b"new"}


def test_what_is_published_can_be_found(storage: LocalStorage) -> None:
    """`find` reads size and SHA-256 from the disk."""
    assert storage.find(PATH, check=never_stop) is None
    storage.publish(begin(storage, b"whole"), PATH)
    found = storage.find(PATH, check=never_stop)
    assert found is not None
    assert (found.bytes, found.sha256) == (5, hashlib.sha256(b"whole").hexdigest())


def test_reading_can_be_stopped(storage: LocalStorage) -> None:
    """Hashing a large file ends when the work must stop."""
    storage.publish(begin(storage, b"whole"), PATH)

    def stop() -> None:
        raise LeaseLostError("gone")

    with pytest.raises(LeaseLostError):
        storage.find(PATH, check=stop)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"whole", None),
        (b"shole", "SHA-256 differs from the stored one"),
        (b"who", "3 bytes where 5 were stored"),
        (None, "missing"),
    ],
)
def test_a_changed_file_is_noticed(
    storage: LocalStorage, root: Path, content: bytes | None, problem: str | None
) -> None:
    """The audit learns that a file was changed, cut or deleted."""
    storage.publish(begin(storage, b"whole"), PATH)
    if content is None:
        (root / PATH).unlink()
    else:
        (root / PATH).write_bytes(content)
    assert storage.find_problem(record(b"whole")) == problem


def test_a_damaged_file_is_kept_aside(storage: LocalStorage, root: Path) -> None:
    """A damaged file leaves its name and stays for a person to see."""
    storage.publish(begin(storage, b"damaged"), PATH)
    found = storage.find(PATH, check=never_stop)
    assert found is not None
    storage.set_aside(PATH, found)
    storage.set_aside(PATH, found)  # gone already: nothing to do
    assert visible(root) == {}
    assert [path.read_bytes() for path in (root / ".damaged/job_demo").iterdir()] == [b"damaged"]


def test_a_file_that_took_its_place_stays(storage: LocalStorage, root: Path) -> None:
    """A worker that slept between finding damage and moving it does not move the new file."""
    storage.publish(begin(storage, b"damaged"), PATH)
    found = storage.find(PATH, check=never_stop)
    assert found is not None
    (root / PATH).unlink()
    storage.publish(begin(storage, b"good"), PATH)
    storage.set_aside(PATH, found)
    assert visible(root) == {PATH: b"good"}


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "job_demo/../../outside"])
def test_a_path_that_leads_out_is_refused(storage: LocalStorage, path: str) -> None:
    """A record cannot name a file outside the storage."""
    with pytest.raises(RetryableError, match="leads out"):
        storage.find(path, check=never_stop)


def test_a_storage_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    """What the operating system refuses is `storage_failed` with its own words."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RetryableError, match=r"could not start .*: (Not a directory|File exists)") as caught:
        LocalStorage(tmp_path / "file").probe()
    assert caught.value.reason == "storage_failed"


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Let the system refuse to make files larger, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing_half(storage: LocalStorage, root: Path) -> None:
    """A write that fails part way is `storage_failed`, and nothing is visible."""
    partial = begin(storage, b"")
    with files_limited_to(1000), pytest.raises(RetryableError, match="could not write 00: File too large") as caught:
        partial.write(b"x" * 2000)
    assert caught.value.reason == "storage_failed"
    partial.discard()
    assert visible(root) == {}
    assert list((root / ".partial").iterdir()) == []


def test_probing_leaves_nothing(storage: LocalStorage, root: Path) -> None:
    """A storage that works is probed without a trace."""
    storage.probe()
    assert [path.name for path in root.rglob("*")] == [".partial"]
