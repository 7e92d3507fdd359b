"""Values arrive in PostgreSQL as they were, and its errors arrive as psycopg's."""

import struct

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors

from shared.claims.postgres.prepared import BINARY, Prepared, int_array, text_array

TEXTS = st.lists(st.none() | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), max_size=20)
ECHO = Prepared("echo", "SELECT t, n::text FROM unnest($1::text[], $2::int4[]) AS x(t, n)")


@given(texts=TEXTS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arrays_arrive_as_they_were(database_url: str, texts: list[str | None]) -> None:
    """Nulls, empty and odd texts, and numbers, in their order."""
    numbers = [number * 1_000_003 for number in range(len(texts))]
    with psycopg.connect(database_url, autocommit=True) as connection:
        values = (text_array(texts), int_array(numbers))
        for _ in range(2):  # prepared, and prepared already
            result = ECHO.run(connection, values, formats=(BINARY, BINARY))
        found = [(result.get_value(row, 0), result.get_value(row, 1)) for row in range(result.ntuples)]
    arrived = [(text if text is None else text.decode(), int(number or b"-1")) for text, number in found]
    assert arrived == list(zip(texts, numbers, strict=True))


def test_an_error_is_psycopgs_with_its_code(database_url: str) -> None:
    """What the server refuses can be told from a server that is away, and the connection works on."""
    refused = Prepared("refused", "SELECT 1 / $1::int4")
    with psycopg.connect(database_url, autocommit=True) as connection:
        with pytest.raises(errors.DivisionByZero) as caught:
            refused.run(connection, (struct.pack("!i", 0),), formats=(BINARY,))
        assert caught.value.sqlstate == "22012"
        with pytest.raises(errors.SyntaxError):
            Prepared("wrong", "SELEKT").run(connection, (), formats=())
        assert refused.run(connection, (struct.pack("!i", 1),), formats=(BINARY,)).ntuples == 1


def test_a_session_that_was_anothers_can_be_used(database_url: str) -> None:
    """A pooler may hand over a session in which a statement of this name is prepared already."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for _ in range(2):
            result = Prepared("claim", "SELECT 1").run(connection, (), formats=())
            assert result.ntuples == 1


def test_a_lost_connection_is_an_operational_error(database_url: str) -> None:
    """A server that hangs up has no code to give."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        ECHO.run(connection, (text_array([]), int_array([])), formats=(BINARY, BINARY))
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            ECHO.run(connection, (text_array([]), int_array([])), formats=(BINARY, BINARY))
        assert connection.broken
