"""Where the files of jobs lie, whole and verified under their final names (I8)."""

from shared.config import Settings
from shared.storage.local import LocalStorage
from shared.storage.storage import Storage

__all__ = ["open_storage"]


def open_storage(settings: Settings) -> Storage:
    """Open the storage of STORAGE_URL; its root is made when the first file is written."""
    return LocalStorage(settings.storage_path)
