"""The only reader of the wall clock."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the process's wall clock as aware UTC; it may jump, so leases and sweeps use the database's."""
    return datetime.now(UTC)


def unix_seconds() -> float:
    """Return the wall clock in Unix seconds, as Sume's timestamp header counts."""
    return time.time()
