"""A store whose claims go over connections of an event loop, for tests that call it from threads."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from shared.claims.postgres.store import PostgresStore
from shared.claims.records import Claim, ClaimResult
from shared.claims.store import ClaimConnection
from shared.errors import StoreUnavailableError
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import STALE

CONNECTIONS = 4
WITHIN_SECONDS = 20


async def claimed(connection: ClaimConnection, claims: Sequence[Claim]) -> list[ClaimResult]:
    """Claim over a connection and wait for what becomes of it; raises StoreUnavailableError."""
    future: asyncio.Future[list[ClaimResult] | StoreUnavailableError] = asyncio.get_running_loop().create_future()
    connection.begin(claims, future.set_result)
    outcome = await asyncio.wait_for(future, WITHIN_SECONDS)
    if isinstance(outcome, StoreUnavailableError):
        raise outcome
    return outcome


class LoopStore(PostgresStore):
    """Runs an event loop in a thread and claims over its connections."""

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url, stale=STALE)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._free: asyncio.Queue[ClaimConnection] = asyncio.Queue()
        self._connections = [self.open_claim_connection() for _ in range(CONNECTIONS)]
        for connection in self._connections:
            self._free.put_nowait(connection)

    def claim_many(self, claims: Sequence[Claim]) -> list[ClaimResult]:
        """Claim over whichever connection is free."""
        if not claims:
            return []
        claiming: Future[list[ClaimResult]] = asyncio.run_coroutine_threadsafe(self._claim(claims), self._loop)
        return claiming.result(WITHIN_SECONDS)

    async def _claim(self, claims: Sequence[Claim]) -> list[ClaimResult]:
        connection = await self._free.get()
        try:
            assert connection.ready()
            return await claimed(connection, claims)
        finally:
            self._free.put_nowait(connection)

    def close(self) -> None:
        """Close the connections on their loop, end it, and close the rest."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(WITHIN_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN_SECONDS)
        self._loop.close()
        super().close()

    async def _close(self) -> None:
        for connection in self._connections:
            connection.close()


class LoopSubject(PostgresSubject):
    """That store on a database of its own."""

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self.store.close()
        self.store = LoopStore(database_url)
