"""The connections to PostgreSQL: pool, session settings, and the translation of the driver's errors."""

import contextlib
import select
import socket
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import DBAPIError, DisconnectionError, InvalidRequestError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.sql.expression import Executable

from shared.errors import StoreUnavailableError

# A cut network must not hold a thread for the kernel's two hours: the client gives up after about ten seconds.
NETWORK = {
    "connect_timeout": 3,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 9_000,
    "application_name": "sume-jobs",
}
# A claim must be on disk before it is answered, and the claim statement is proven at READ COMMITTED, whatever the
# database's defaults are.
SESSION = """
SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),
       set_config('default_transaction_isolation', 'read committed', false), set_config('TimeZone', 'UTC', false),
       CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
UNREACHABLE_CLASSES = ("08", "53", "57")  # connection, resources, operator intervention: no row is at fault
CANCELED_BY_TIMEOUT = ("57014", "55P03")  # statement or lock timeout: one row may be at fault


class Database:
    """A pool of autocommitting connections; every statement is a transaction of its own."""

    def __init__(
        self, database_url: str, *, statement_timeout_ms: int, lock_timeout_ms: int, pool_size: int = 4
    ) -> None:
        self._session = (str(statement_timeout_ms), str(lock_timeout_ms))
        self._engine = create_engine(
            "postgresql+psycopg://" + database_url.split("://", 1)[1],
            isolation_level="AUTOCOMMIT",
            pool_size=pool_size,
            max_overflow=4,
            pool_timeout=5,
            hide_parameters=True,
            connect_args=NETWORK,
        )
        event.listen(self._engine, "connect", self._prepare_session)
        event.listen(self._engine, "checkout", refuse_hung_up)
        self._busy: set[psycopg.Connection[Any]] = set()
        self._busy_lock = threading.Lock()

    def _prepare_session(self, connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(SESSION, self._session)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection; any error of the driver or the pool becomes StoreUnavailableError."""
        with translated_errors():
            with checked_out():
                connection = self._engine.connect()
            with connection:
                yield connection

    @contextlib.contextmanager
    def transactions(self) -> Iterator[Connection]:
        """Lend a connection that does not commit by itself, for migrations."""
        with self.connection() as connection:
            yield connection.execution_options(isolation_level="READ COMMITTED")

    @contextlib.contextmanager
    def driver_connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend the driver's own connection, for the statements that are worth it; `interrupt` can break it."""
        with translated_errors():
            with checked_out():
                pooled = self._engine.raw_connection()
            connection: Any = pooled.driver_connection
            with self._busy_lock:
                self._busy.add(connection)
            try:
                yield connection
            except psycopg.Error:
                if connection.broken or connection.closed:
                    pooled.invalidate()
                raise
            finally:
                with self._busy_lock:
                    self._busy.discard(connection)
                pooled.close()

    def interrupt(self) -> None:
        """Hang up on every driver connection in use: what waits for an answer raises StoreUnavailableError at once.

        Whether the database had finished the statement is unknown then, as with any cut connection.
        """
        with self._busy_lock:
            for connection in self._busy:
                with (
                    contextlib.suppress(psycopg.OperationalError, OSError),
                    socket.socket(fileno=socket.dup(connection.fileno())) as hung_up,
                ):
                    hung_up.shutdown(socket.SHUT_RDWR)

    def rows(self, statement: Executable, **parameters: object) -> Sequence[Row[Any]]:
        """Run one statement and return its rows."""
        with self.connection() as connection:
            return connection.execute(statement, parameters).all()

    def row(self, statement: Executable, **parameters: object) -> Row[Any] | None:
        """Run one statement and return its first row, or None."""
        rows = self.rows(statement, **parameters)
        return rows[0] if rows else None

    def changed(self, statement: Executable, **parameters: object) -> int:
        """Run one statement without rows and return how many it changed."""
        with self.connection() as connection:
            return connection.execute(statement, parameters).rowcount

    def close(self) -> None:
        """Give every connection back."""
        self._engine.dispose()


def refuse_hung_up(connection: Any, _record: object, _proxy: object) -> None:
    """Let the pool replace a connection the server closed while it was idle; costs no round trip."""
    poll = select.poll()  # select() refuses descriptors beyond 1023, which a busy receiver has
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError("the server closed the idle connection")


@contextlib.contextmanager
def checked_out() -> Iterator[None]:
    """Translate what the pool raises when the server hangs up on every new connection, as one shutting down does."""
    try:
        yield
    except InvalidRequestError as error:
        raise StoreUnavailableError("PostgreSQL closes every new connection") from error


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Raise StoreUnavailableError for any error of driver or pool, with a text that holds no value of a row."""
    try:
        yield
    except PoolTimeoutError as error:
        raise StoreUnavailableError("every connection to PostgreSQL is in use") from error
    except DBAPIError as error:
        let_go_of_socket(error.orig)
        raise translated(error.orig) from None  # the driver's own text quotes rows (I9)
    except psycopg.Error as error:
        let_go_of_socket(error)
        raise translated(error) from None  # the same


def let_go_of_socket(error: BaseException | None) -> None:
    """Close what psycopg leaves of an attempt to connect that timed out.

    Its half-made connection stands in a cycle of frames and errors that only the garbage collector finds, which in
    the receiver seldom works: a database that is frozen for long took every descriptor the process may have.
    """
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        traceback.clear_frames(error.__traceback__)


def translated(error: BaseException | None) -> StoreUnavailableError:
    """Build our error; DETAIL and CONTEXT are left out because they quote rows (I9)."""
    if (
        isinstance(error, psycopg.DataError) and error.sqlstate is None
    ):  # refused by the driver, its text quotes nothing
        return StoreUnavailableError(f"PostgreSQL cannot hold a value: {error}", reachable=True)
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None:  # never reached the server, or lost it: libpq's text names host and user, no password
        lines = str(error).strip().splitlines()
        return StoreUnavailableError(f"PostgreSQL cannot be reached: {lines[0] if lines else type(error).__name__}")
    message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    if state in {"42P01", "42703"}:
        message = f"{message}; run `sume-jobs migrate`"
    reachable = state in CANCELED_BY_TIMEOUT or not state.startswith(UNREACHABLE_CLASSES)
    return StoreUnavailableError(f"PostgreSQL refused: {message} ({state})", reachable=reachable)
