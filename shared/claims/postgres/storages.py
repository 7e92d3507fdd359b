"""The id of the storage this database's files are in."""

from sqlalchemy import text

from shared.claims.postgres.database import Database

SHOW = text("SELECT id FROM sume_storage")
KEEP = text("INSERT INTO sume_storage (id) VALUES (:id) ON CONFLICT (the_only) DO NOTHING")
REPLACE = text("""
    INSERT INTO sume_storage (id) VALUES (:id)
    ON CONFLICT (the_only) DO UPDATE SET id = excluded.id, known_since = now()
""")


class Storages:
    """The StorageStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def storage_id(self) -> str | None:
        """See StorageStore.storage_id."""
        row = self._database.row(SHOW)
        return None if row is None else row.id

    def keep_storage_id(self, storage_id: str) -> str:
        """See StorageStore.keep_storage_id."""
        self._database.changed(KEEP, id=storage_id)
        return self.storage_id() or storage_id

    def replace_storage_id(self, storage_id: str) -> None:
        """See StorageStore.replace_storage_id."""
        self._database.changed(REPLACE, id=storage_id)
