"""Retry-After in every shape a server may send."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.sume.retry_after import FOREVER, parse_retry_after

NOW = datetime(2026, 5, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        (" 30 ", 30),
        ("1000000", 1_000_000),
        ("9" * 18, FOREVER),
        ("Sun, 17 May 2026 12:01:30 GMT", 90),
        ("Sun, 17 May 2026 12:01:30 -0000", 90),
        ("Sun, 17 May 2026 14:01:30 +0200", 90),
        ("Sun, 17 May 2026 11:59:00 GMT", 0),
        ("-5", None),
        ("+5", None),
        ("1.5", None),
        ("1_0", None),
        ("\u0665", None),
        ("9" * 400, None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_seconds_and_dates_are_understood(value: str | None, seconds: float | None) -> None:
    """Whole seconds and HTTP dates are a wait, a date that is past is none, and anything else is garbage."""
    assert parse_retry_after(value, now=NOW) == seconds


@given(
    st.text() | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,9} [A-Z][a-z]{2} [0-9]{1,12} [0-9:]{1,9} [+-]?[0-9GMT]{0,12}")
)
@example("Sun, 17 May 99999999999 12:00:00 GMT")
@example("Sun, 17 May 2026 12:00:00 +99999999999999")
def test_nothing_a_server_sends_raises(value: str) -> None:
    """Any header gives a wait that can be calculated with, or None."""
    seconds = parse_retry_after(value, now=NOW)
    assert seconds is None or 0 <= seconds < 1e12
