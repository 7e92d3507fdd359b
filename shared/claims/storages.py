"""What a claim store promises about the storage its files are in: it knows one, by the id that lies there too."""

from typing import Protocol


class StorageStore(Protocol):
    """The part of a store that knows the storage."""

    def storage_id(self) -> str | None:
        """Return the id of the storage this database knows; None before the first."""
        ...

    def keep_storage_id(self, storage_id: str) -> str:
        """Know this storage unless one is known already; return the id that is known now."""
        ...

    def replace_storage_id(self, storage_id: str) -> None:
        """Know this storage from now on, whatever was known: a person wants it so."""
        ...
