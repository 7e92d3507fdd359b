"""A connection over which an event loop claims: libpq's asynchronous calls, no thread."""

import asyncio
import select
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta

import psycopg
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

from shared.claims.postgres.claiming import CLAIM_PREPARED, FORMATS, Batch
from shared.claims.postgres.database import Database, translated
from shared.claims.postgres.prepared import checked
from shared.claims.records import Claim, ClaimResult
from shared.claims.store import ClaimsDone
from shared.errors import StoreUnavailableError


class LoopConnection:
    """The ClaimConnection on PostgreSQL (source of the order of calls: libpq's chapter on asynchronous commands).

    It keeps a connection of the pool until it is lost or closed. A thread per statement would have to be woken, wake
    the loop, and share the interpreter with it: without that a receiver makes two fifths more claims a second.
    """

    def __init__(self, database: Database, *, stale: timedelta) -> None:
        self._stale = stale
        with ExitStack() as opened:
            self._connection = opened.enter_context(database.driver_connection())
            CLAIM_PREPARED.prepare(self._connection)
            self._lent = opened.pop_all()
        self._wire = self._connection.pgconn
        self._wire.nonblocking = 1
        self._descriptor = self._wire.socket
        self._arrived = select.poll()  # select() refuses descriptors beyond 1023, which a busy receiver has
        self._arrived.register(self._descriptor, select.POLLIN)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batch: Batch | None = None
        self._done: ClaimsDone | None = None
        self._result: PGresult | None = None
        self._sending = False
        self.lost = False

    def ready(self) -> bool:
        """See ClaimConnection.ready."""
        self._attach()
        return not self.lost and self._batch is None and not self._arrived.poll(0)

    def begin(self, claims: Sequence[Claim], done: ClaimsDone) -> None:
        """See ClaimConnection.begin."""
        batch = Batch(claims)
        values = batch.values(stale=self._stale)
        self._attach()
        CLAIM_PREPARED.send(self._connection, values, formats=FORMATS)
        self._batch, self._done, self._result = batch, done, None
        self._send()

    def _attach(self) -> None:
        """Hear from now on what the server says, its hanging up too."""
        if self._loop is None and not self.lost:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._descriptor, self._read)

    def _send(self) -> None:
        """Give the kernel what it takes; the rest when it takes more."""
        try:
            unsent = self._wire.flush() == 1
        except psycopg.Error as error:
            self._lose(error)
            return
        if unsent != self._sending and self._loop is not None:
            self._sending = unsent
            if unsent:
                self._loop.add_writer(self._descriptor, self._send)
            else:
                self._loop.remove_writer(self._descriptor)

    def _read(self) -> None:
        """Take what the server sent: an answer, or, when nothing was asked, its hanging up."""
        try:
            self._wire.consume_input()
            if self._sending:
                self._send()
            while self._batch is not None and not self._wire.is_busy():
                result = self._wire.get_result()
                if result is not None:
                    self._result = result
                elif self._wire.status == ConnStatus.OK:
                    self._settle(self._batch)
                else:
                    raise psycopg.OperationalError(self._wire.get_error_message())
        except psycopg.Error as error:
            self._lose(error)

    def _settle(self, batch: Batch) -> None:
        """Tell what became of the batch; from here on the next may begin, even before this returns."""
        result, done = self._result, self._done
        self._batch = self._done = self._result = None
        if done is None:
            return
        done(self._outcome(batch, result))

    def _outcome(self, batch: Batch, result: PGresult | None) -> list[ClaimResult] | StoreUnavailableError:
        if result is None:
            return StoreUnavailableError("PostgreSQL gave no answer")
        try:
            return batch.results(checked(self._connection, result, ExecStatus.TUPLES_OK))
        except psycopg.Error as error:
            return translated(error)
        except Exception as error:  # noqa: BLE001 - a defect must not leave its batch untold
            return StoreUnavailableError(f"{type(error).__name__} while claiming", reachable=True)

    def _lose(self, error: psycopg.Error) -> None:
        """Give up the connection; whether the batch under way was stored is unknown then."""
        done = self._done
        self.close()
        if done is not None:
            done(translated(error))

    def close(self) -> None:
        """See ClaimConnection.close."""
        if self.lost:
            return
        self.lost = True
        self._batch = self._done = self._result = None
        if self._loop is not None:
            self._loop.remove_reader(self._descriptor)
            self._loop.remove_writer(self._descriptor)
        self._connection.close()
        gone = psycopg.OperationalError("closed")
        with suppress(StoreUnavailableError):  # which is how the pool learns that it must not lend it again
            self._lent.__exit__(type(gone), gone, None)
