"""What a claim store promises about signed bodies that were not understood."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """A signed body that was not understood, as `quarantine list` shows it."""

    id: int
    reason: str
    count: int
    bytes: int
    first_seen: datetime
    last_seen: datetime
    replayed_at: datetime | None


@dataclass(frozen=True, slots=True)
class QuarantinedBody:
    """The same with the body exactly as it came."""

    entry: QuarantineEntry
    body: bytes


class QuarantineStore(Protocol):
    """What keeps the signed bodies that were not understood, until they are."""

    def list_quarantine(self, *, replayed: bool, limit: int) -> list[QuarantineEntry]:
        """Return the open ones, the latest first, and with `replayed` after them those that were replayed."""
        ...

    def open_quarantine_ids(self) -> list[int]:
        """Return the ids of all that were not replayed, the oldest first."""
        ...

    def get_quarantined(self, quarantine_id: int) -> QuarantinedBody | None:
        """Return one with its body."""
        ...

    def mark_replayed(self, quarantine_id: int) -> bool:
        """Note that a body was understood and claimed; False when that was noted before."""
        ...

    def untold_quarantine(self, *, limit: int) -> list[QuarantineEntry]:
        """Return open ones that no alert has told of, the oldest first."""
        ...

    def mark_quarantine_told(self, quarantine_ids: Collection[int]) -> None:
        """Note that people were told of them."""
        ...
