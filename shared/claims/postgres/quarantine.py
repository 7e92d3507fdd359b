"""The quarantine: signed bodies that were not understood, each kept once until it is."""

import hashlib
from collections.abc import Collection
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Row

from shared.claims.postgres.database import Database
from shared.claims.quarantine import QuarantinedBody, QuarantineEntry

# Keep a body that was not understood, once.
QUARANTINE = text("""
    INSERT INTO sume_quarantine AS q (reason, body, body_sha256) VALUES (:reason, :body, :body_sha256)
    ON CONFLICT (body_sha256) DO UPDATE SET count = q.count + 1, last_seen = now(), reason = excluded.reason
""")

FACTS = "id, reason, count AS counted, octet_length(body) AS bytes, first_seen, last_seen, replayed_at"

LIST_OPEN = text(f"""
    SELECT {FACTS} FROM sume_quarantine WHERE replayed_at IS NULL ORDER BY id DESC LIMIT :limit
""")  # noqa: S608 - built from the constant above
LIST_REPLAYED = text(f"""
    SELECT {FACTS} FROM sume_quarantine WHERE replayed_at IS NOT NULL ORDER BY last_seen DESC, id DESC LIMIT :limit
""")  # noqa: S608 - the same
OPEN_IDS = text("SELECT id FROM sume_quarantine WHERE replayed_at IS NULL ORDER BY id")
GET = text(f"SELECT {FACTS}, body FROM sume_quarantine WHERE id = :id")  # noqa: S608 - the same
REPLAYED = text("UPDATE sume_quarantine SET replayed_at = now() WHERE id = :id AND replayed_at IS NULL")

UNTOLD = text(f"""
    SELECT {FACTS} FROM sume_quarantine WHERE told_at IS NULL AND replayed_at IS NULL ORDER BY id LIMIT :limit
""")  # noqa: S608 - the same
TOLD = text("UPDATE sume_quarantine SET told_at = now() WHERE id = ANY(:ids)")


class Quarantining:
    """The QuarantineStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def quarantine(self, body: bytes, *, reason: str) -> None:
        """See ReceivingStore.quarantine."""
        digest = hashlib.sha256(body).digest()
        self._database.changed(QUARANTINE, reason=reason, body=body, body_sha256=digest)

    def list_quarantine(self, *, replayed: bool, limit: int) -> list[QuarantineEntry]:
        """See QuarantineStore.list_quarantine."""
        rows = self._database.rows(LIST_OPEN, limit=limit)
        if replayed:
            rows = [*rows, *self._database.rows(LIST_REPLAYED, limit=limit - len(rows))]
        return [entry_of(row) for row in rows]

    def open_quarantine_ids(self) -> list[int]:
        """See QuarantineStore.open_quarantine_ids."""
        return [row.id for row in self._database.rows(OPEN_IDS)]

    def get_quarantined(self, quarantine_id: int) -> QuarantinedBody | None:
        """See QuarantineStore.get_quarantined."""
        row = self._database.row(GET, id=quarantine_id)
        return None if row is None else QuarantinedBody(entry_of(row), bytes(row.body))

    def mark_replayed(self, quarantine_id: int) -> bool:
        """See QuarantineStore.mark_replayed."""
        return self._database.changed(REPLAYED, id=quarantine_id) == 1

    def untold_quarantine(self, *, limit: int) -> list[QuarantineEntry]:
        """See QuarantineStore.untold_quarantine."""
        return [entry_of(row) for row in self._database.rows(UNTOLD, limit=limit)]

    def mark_quarantine_told(self, quarantine_ids: Collection[int]) -> None:
        """See QuarantineStore.mark_quarantine_told."""
        self._database.changed(TOLD, ids=list(quarantine_ids))


def entry_of(row: Row[Any]) -> QuarantineEntry:
    """Return what is known about a body, without the body."""
    return QuarantineEntry(
        id=row.id,
        reason=row.reason,
        count=row.counted,
        bytes=row.bytes,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        replayed_at=row.replayed_at,
    )
