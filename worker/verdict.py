"""What becomes of a job whose attempt failed: tried again after a wait, or dead."""

import random
from datetime import timedelta

from shared.claims.records import Lease
from shared.claims.states import WORLD_REASONS, Reason
from shared.config import Settings
from shared.errors import AttemptError, PermanentError

MAX_DOUBLINGS = 30


def is_final(error: AttemptError, *, lease: Lease, settings: Settings) -> bool:
    """Whether the failed attempt was the last one.

    The world's failures must use up the attempts and last RETRY_FOR_SECONDS too, so that an outage of hours kills
    nothing. Every other failure is a strike, and strikes alone decide: a crash after such an outage kills nothing.
    """
    if isinstance(error, PermanentError):
        return True
    if Reason(error.reason) in WORLD_REASONS:
        return lease.attempt >= settings.max_attempts and lease.claimed_for >= settings.seconds("retry_for")
    return lease.strikes + 1 >= settings.max_attempts


def back_off(lease: Lease, *, settings: Settings) -> timedelta:
    """Return the wait before the next attempt: doubling, bounded, and spread so that an outage ends in no stampede."""
    doubled: timedelta = settings.seconds("retry_base") * 2 ** min(lease.attempt - 1, MAX_DOUBLINGS)
    return spread(min(doubled, settings.seconds("retry_max")))


def spread(wait: timedelta) -> timedelta:
    """Return a wait between half of this and all of it, so that those who wait do not come back together."""
    return wait * random.uniform(0.5, 1)  # noqa: S311 - nothing secret
