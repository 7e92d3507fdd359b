"""How long a Retry-After header asks us to wait."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

SECONDS = re.compile(r"[0-9]{1,18}")
FOREVER = 1e9
"""Some thirty years: more than anybody waits, and safe to calculate with."""


def parse_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Return the seconds to wait; None for garbage. A million is a million: the caller bounds it."""
    text = (value or "").strip()
    if SECONDS.fullmatch(text):
        return min(float(text), FOREVER)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
