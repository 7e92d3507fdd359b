"""When a failed attempt was the last one, and how long until the next."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.claims.states import WORLD_REASONS, Reason
from shared.config import Settings
from shared.errors import PermanentError, RetryableError
from tests.worker.test_lease import LEASE
from worker.verdict import back_off, is_final

SETTINGS = Settings(max_attempts=3, retry_for_seconds=3600, retry_base_seconds=5, retry_max_seconds=100)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("reason", sorted(WORLD_REASONS))
def test_the_world_must_fail_often_enough_and_long_enough(reason: Reason) -> None:
    error = RetryableError(reason, "")
    for attempt, claimed_for, final in ((3, HOUR, True), (2, 24 * HOUR, False), (99, HOUR / 2, False)):
        lease = replace(LEASE, attempt=attempt, claimed_for=claimed_for, strikes=2)
        assert is_final(error, lease=lease, settings=SETTINGS) is final


@pytest.mark.parametrize("reason", sorted(set(Reason) - WORLD_REASONS))
def test_any_other_failure_counts_strikes_alone(reason: Reason) -> None:
    """One crash after an outage of hours kills nothing."""
    error = RetryableError(reason, "")
    for attempt, strikes, final in ((99, 1, False), (3, 2, True)):
        lease = replace(LEASE, attempt=attempt, strikes=strikes, claimed_for=24 * HOUR)
        assert is_final(error, lease=lease, settings=SETTINGS) is final


def test_a_permanent_error_is_final_at_once() -> None:
    assert is_final(PermanentError("no"), lease=LEASE, settings=SETTINGS)


def test_the_wait_doubles_up_to_a_bound_and_is_spread() -> None:
    for attempt, longest in ((1, 5), (2, 10), (4, 40), (6, 100), (5000, 100)):
        lease = replace(LEASE, attempt=attempt)
        waits = {back_off(lease, settings=SETTINGS).total_seconds() for _ in range(50)}
        assert longest / 2 <= min(waits) < max(waits) <= longest
