"""Where a page of the job list ended, as a text to ask for the next one with."""

import re
from datetime import UTC, datetime, timedelta

from shared.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CURSOR = re.compile(r"([0-9])\.([0-9]{1,17})\.([A-Za-z0-9][A-Za-z0-9._:-]{0,127})")
"""Attention, microseconds since 1970, job_id; every text of this form is a place in the list."""


def write_cursor(*, attention: int, updated_at: datetime, job_id: str) -> str:
    """Return the text that names a row's place."""
    return f"{attention}.{(updated_at - EPOCH) // MICROSECOND}.{job_id}"


def read_cursor(cursor: str) -> dict[str, object]:
    """Return the place a cursor names, by column; raise UsageError for any other text."""
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise UsageError("the cursor is not one that this list gave")
    attention, microseconds, job_id = found.groups()
    return {"attention": int(attention), "updated_at": EPOCH + int(microseconds) * MICROSECOND, "job_id": job_id}
