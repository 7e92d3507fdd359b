"""A storage is worked with only when it is the one the database knows."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.errors import HeldError, RetryableError, StoreUnavailableError
from shared.storage.local import LocalStorage
from shared.storage.paths import ID_FILE
from shared.storage.recognition import StorageGuard, WrongStorageError, adopt, compare, recognise


class Ledger:
    """A StorageStore in memory that may be away."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.known: str | None = None
        self._lock = threading.Lock()

    def storage_id(self) -> str | None:
        """See StorageStore.storage_id."""
        if self.away:
            raise StoreUnavailableError("away")
        return self.known

    def keep_storage_id(self, storage_id: str) -> str:
        """See StorageStore.keep_storage_id."""
        with self._lock:
            self.known = self.known or storage_id
        return self.known

    def replace_storage_id(self, storage_id: str) -> None:
        """See StorageStore.replace_storage_id."""
        self.known = storage_id


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def put_file(root: Path) -> None:
    """Let a job's file lie there."""
    (root / "job_demo").mkdir(parents=True)
    (root / "job_demo" / "00-a.png").write_bytes(b"whole")


def test_first_use_makes_both_know_each_other(tmp_path: Path, ledger: Ledger) -> None:
    """Any number may be first: they all come to the same id."""
    together = threading.Barrier(16)

    def start(_number: int) -> str:
        together.wait(10)
        return recognise(LocalStorage(tmp_path / "artifacts"), ledger)

    with ThreadPoolExecutor(16) as pool:
        (known,) = set(pool.map(start, range(16)))
    assert (tmp_path / "artifacts" / ID_FILE).read_text() == f"{known}\n"
    assert ledger.known == known
    assert [path.name for path in (tmp_path / "artifacts" / ".partial").iterdir()] == []


def test_looking_makes_nobody_know_anything(tmp_path: Path, ledger: Ledger) -> None:
    """`check` and `audit` look."""
    assert compare(LocalStorage(tmp_path / "artifacts"), ledger) is None
    assert ledger.known is None
    assert list(tmp_path.iterdir()) == []


def test_a_storage_from_before_ids_is_taken_over(tmp_path: Path, ledger: Ledger) -> None:
    put_file(tmp_path)
    assert recognise(LocalStorage(tmp_path), ledger) == ledger.known


def test_of_two_storages_only_one_becomes_known(tmp_path: Path, ledger: Ledger) -> None:
    """Two hosts whose volume is not mounted would each work in a folder of their own."""
    together = threading.Barrier(2)

    def start(name: str) -> bool:
        together.wait(10)
        try:
            recognise(LocalStorage(tmp_path / name), ledger)
        except WrongStorageError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(start, "ab")) == [False, True]


@pytest.mark.parametrize("files", [True, False])
def test_an_emptied_or_unmounted_storage_is_refused(tmp_path: Path, ledger: Ledger, *, files: bool) -> None:
    """A database that knows a storage accepts none without an id, with files or not, and nothing is made."""
    recognise(LocalStorage(tmp_path / "volume"), ledger)
    if files:
        put_file(tmp_path / "mountpoint")
    with pytest.raises(WrongStorageError, match=r"STORAGE_URL: .* mount or restore .*migrate --adopt-storage"):
        recognise(LocalStorage(tmp_path / "mountpoint"), ledger)
    assert not (tmp_path / "mountpoint" / ID_FILE).exists()


def test_the_storage_of_another_installation_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    recognise(LocalStorage(tmp_path / "ours"), ledger)
    recognise(LocalStorage(tmp_path / "theirs"), Ledger())
    with pytest.raises(WrongStorageError, match="of another one"):
        recognise(LocalStorage(tmp_path / "theirs"), ledger)


def test_a_new_database_does_not_take_a_used_storage(tmp_path: Path, ledger: Ledger) -> None:
    """It may be a typing error in DATABASE_URL; its scheduler would sweep away what others work on."""
    recognise(LocalStorage(tmp_path), ledger)
    put_file(tmp_path)
    with pytest.raises(WrongStorageError, match="of another database"):
        recognise(LocalStorage(tmp_path), Ledger())


def test_a_storage_nobody_worked_with_may_have_its_id_already(tmp_path: Path, ledger: Ledger) -> None:
    """Whoever made it died before the database was told."""
    (tmp_path / "lost+found").mkdir()
    made = LocalStorage(tmp_path).make_id()
    assert recognise(LocalStorage(tmp_path), ledger) == made


def test_a_person_decides_which_storage_is_known(tmp_path: Path, ledger: Ledger) -> None:
    """The other one is strange from then on."""
    old, new = LocalStorage(tmp_path / "old"), LocalStorage(tmp_path / "new")
    recognise(old, ledger)
    adopt(new, ledger)
    assert recognise(new, ledger) == ledger.known
    with pytest.raises(WrongStorageError):
        recognise(old, ledger)


def test_a_guard_waits_for_whoever_is_away_and_then_refuses(tmp_path: Path) -> None:
    """The first moment both answer decides."""
    ledger = Ledger(away=True)
    ledger.known = "another"
    guard, refused = StorageGuard(LocalStorage(tmp_path), ledger), threading.Event()
    assert not guard.try_recognise()
    watch = threading.Thread(target=guard.watch, args=(threading.Event(),), kwargs={"refused": refused.set})
    watch.start()
    assert not refused.wait(0.2)
    ledger.away = False
    assert refused.wait(10)
    watch.join()
    assert isinstance(guard.refused, WrongStorageError)


def test_a_storage_that_cannot_be_looked_at_is_not_a_wrong_one(tmp_path: Path, ledger: Ledger) -> None:
    """It is away: somebody tries again."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RetryableError):
        recognise(LocalStorage(tmp_path / "file"), ledger)
    assert not StorageGuard(LocalStorage(tmp_path / "file"), ledger).try_recognise()


def test_a_volume_that_goes_away_later_is_noticed(tmp_path: Path, ledger: Ledger) -> None:
    """Before each use; and when it is back, all is well."""
    guard = StorageGuard(LocalStorage(tmp_path / "volume"), ledger)
    guard.recognise()
    guard.require()
    (tmp_path / "volume").rename(tmp_path / "unmounted")
    with pytest.raises(HeldError, match="is gone; is it mounted") as caught:
        guard.require()
    assert caught.value.reason == "storage_failed"
    (tmp_path / "unmounted").rename(tmp_path / "volume")
    guard.require()
