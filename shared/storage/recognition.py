"""Whether this is the storage that this database knows, by an id that is kept in both.

An empty folder where a volume is not mounted, or the files of another installation, must not be worked with: files
would be published where nobody looks for them, and partials of strangers would be swept away.
"""

import threading
from collections.abc import Callable

from shared.claims.states import Reason
from shared.claims.storages import StorageStore
from shared.errors import HeldError, RetryableError, SettingsError, StoreUnavailableError
from shared.logs import get_logger
from shared.storage.paths import ID_FILE
from shared.storage.storage import Storage

RETRY_SECONDS = 1.0
ADOPT = "sume-jobs migrate --adopt-storage"


class WrongStorageError(SettingsError):
    """The storage is not the one this database knows: worker and scheduler stop with exit 2."""

    def __init__(self, problem: str) -> None:
        super().__init__("STORAGE_URL", f"not the storage this database knows: {problem}")


def compare(storage: Storage, store: StorageStore) -> str | None:
    """Return the id that both sides know, None while neither knows any; changes nothing.

    Raises WrongStorageError, StoreUnavailableError, and RetryableError (storage_failed).
    """
    known, found, where = store.storage_id(), storage.read_id(), f"{ID_FILE} in {storage.place}"
    if known is None and found is not None:
        if storage.is_fresh():
            return None  # whoever gave it its id has not told the database yet, or could not
        known = store.storage_id()  # whoever was first may be at work by now
        if known is None:
            raise WrongStorageError(
                f"{where} is of another database, and this one knows none; see that DATABASE_URL and STORAGE_URL "
                f"belong together, then run `{ADOPT}`"
            )
    if known is not None and found is None:
        raise WrongStorageError(
            f"there is no {where}; mount or restore the right one, or, if its files are to be given up, run `{ADOPT}`"
        )
    if found != known:
        raise WrongStorageError(
            f"{where} is of another one; let STORAGE_URL and DATABASE_URL name what belongs together, or, if this is "
            f"the one from now on, run `{ADOPT}`"
        )
    return known


def recognise(storage: Storage, store: StorageStore) -> str:
    """Return the id that both sides know, which the first to call gives them; any number may call at once.

    The storage is given its id before the database learns it, so of two storages only one can become known.
    Raises as `compare` does.
    """
    known = compare(storage, store)
    if known is None:
        store.keep_storage_id(storage.make_id())
        known = compare(storage, store)
    assert known is not None  # noqa: S101 - the database has just been told, and forgets nothing
    return known


def adopt(storage: Storage, store: StorageStore) -> None:
    """Make this the storage that the database knows, whatever it knew."""
    store.replace_storage_id(storage.make_id())


class StorageGuard:
    """Lets a process work with the storage once it is recognised; may be shared by threads."""

    def __init__(self, storage: Storage, store: StorageStore) -> None:
        self._storage = storage
        self._store = store
        self._id: str | None = None
        self.refused: WrongStorageError | None = None

    def recognise(self) -> None:
        """Recognise the storage, once; raises as the function does."""
        if self._id is not None:
            return
        try:
            self._id = recognise(self._storage, self._store)
        except WrongStorageError as error:
            self.refused = error
            raise

    def try_recognise(self) -> bool:
        """Recognise the storage if database and storage answer; False when they do not. Raises WrongStorageError."""
        try:
            self.recognise()
        except (StoreUnavailableError, RetryableError) as error:
            get_logger().warning("storage.unrecognised", error=str(error))
            return False
        return True

    def watch(self, over: threading.Event, *, refused: Callable[[], None]) -> None:
        """Try until the storage is recognised, it is refused, or all is over."""
        try:
            while not self.try_recognise():
                if over.wait(RETRY_SECONDS):
                    return
        except WrongStorageError:
            refused()

    def require(self) -> None:
        """Return when the storage, once recognised, is still there; raise HeldError when it was taken away."""
        found = self._storage.read_id()
        if found != self._id:
            problem = "is gone" if found is None else "is another one"
            raise HeldError(
                Reason.STORAGE_FAILED,
                f"storage is not the one this database knows any more: its {ID_FILE} {problem}; is it mounted?",
            )
