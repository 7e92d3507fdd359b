"""A statement spoken to libpq itself, for the one place where psycopg's cursors cost more than the statement."""

import secrets
import struct
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

TEXT, BINARY = 0, 1
TEXT_OID, INT4_OID = 25, 23
ARRAY_HEADER, LENGTH, INT4_ELEMENT = struct.Struct("!iiIii"), struct.Struct("!i"), struct.Struct("!ii")
NULL_ELEMENT = LENGTH.pack(-1)


class Prepared:
    """Prepared once a connection, sent and read in PostgreSQL's binary format.

    psycopg's cursor takes 30 µs more for each run and 3 for each row, in which it keeps the event loop from running:
    without it a receiver claims an eighth more a second (3 interleaved pairs).
    """

    def __init__(self, name: str, query: str) -> None:
        # Never the same twice: a pooler may give us a session in which somebody like us has prepared before.
        self._name, self._query = f"{name}_{secrets.token_hex(4)}".encode(), query.encode()
        self._prepared_on: WeakSet[psycopg.Connection[Any]] = WeakSet()

    def prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Prepare it on a connection, unless it is prepared there; raises psycopg.Error."""
        if connection not in self._prepared_on:
            checked(connection, connection.pgconn.prepare(self._name, self._query), ExecStatus.COMMAND_OK)
            self._prepared_on.add(connection)

    def run(self, connection: psycopg.Connection[Any], values: Sequence[bytes], *, formats: Sequence[int]) -> PGresult:
        """Return the rows, all values binary; waits without the interpreter's lock. Raises psycopg.Error."""
        self.prepare(connection)
        result = connection.pgconn.exec_prepared(self._name, values, formats, BINARY)
        return checked(connection, result, ExecStatus.TUPLES_OK)

    def send(self, connection: psycopg.Connection[Any], values: Sequence[bytes], *, formats: Sequence[int]) -> None:
        """Begin a run on a connection where it is prepared, without waiting for the rows. Raises psycopg.Error."""
        connection.pgconn.send_query_prepared(self._name, values, formats, BINARY)


def checked(connection: psycopg.Connection[Any], result: PGresult, wanted: ExecStatus) -> PGresult:
    """Return a result that is as wanted; raise the error it holds, or that of a connection that was lost."""
    if result.status == wanted:
        return result
    if connection.pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError(connection.pgconn.get_error_message())
    raise error_from_result(result)


def text_array(texts: Sequence[str | None]) -> bytes:
    """Return a `text[]`; raises UnicodeEncodeError for what is no text."""
    parts = [ARRAY_HEADER.pack(1, 1, TEXT_OID, len(texts), 1)]
    for text in texts:
        if text is None:
            parts.append(NULL_ELEMENT)
        else:
            raw = text.encode()
            parts += (LENGTH.pack(len(raw)), raw)
    return b"".join(parts)


def int_array(numbers: Sequence[int]) -> bytes:
    """Return an `int4[]`."""
    parts = [ARRAY_HEADER.pack(1, 0, INT4_OID, len(numbers), 1)]
    parts += [INT4_ELEMENT.pack(4, number) for number in numbers]
    return b"".join(parts)
