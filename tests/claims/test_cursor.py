"""The cursor of the job list: what is written is read, and any other text is refused, never crashed on."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.claims.cursor import CURSOR, read_cursor, write_cursor
from shared.errors import UsageError
from shared.sume.payload import JOB_ID

TIMES = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(5000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone


@given(st.integers(0, 2), TIMES, st.from_regex(JOB_ID, fullmatch=True))
def test_a_place_comes_back(attention: int, updated_at: datetime, job_id: str) -> None:
    """To the microsecond, whatever the job_id holds, in characters that a URL needs no escaping for."""
    cursor = write_cursor(attention=attention, updated_at=updated_at, job_id=job_id)
    assert read_cursor(cursor) == {"attention": attention, "updated_at": updated_at, "job_id": job_id}
    assert cursor.isascii()


@given(st.from_regex(CURSOR, fullmatch=True))
@example("9.99999999999999999.a")
def test_every_text_of_the_form_is_a_place(cursor: str) -> None:
    """So the form, which stands in the OpenAPI document, says all."""
    assert read_cursor(cursor)


@given(st.text())
@example("0.1.")
@example("0.1.job\n")
@example("0.100000000000000000.job")
@example("0.\u0661.job")
@example("[" * 100_000)
def test_any_other_text_is_refused(text: str) -> None:
    """Never with anything but our own error."""
    if not CURSOR.fullmatch(text):
        with pytest.raises(UsageError):
            read_cursor(text)
