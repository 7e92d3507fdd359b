"""The whole store on PostgreSQL, put together."""

from datetime import timedelta

from shared.claims.postgres.claiming import Claiming
from shared.claims.postgres.database import Database
from shared.claims.postgres.hosts import Hosts
from shared.claims.postgres.leasing import Leasing
from shared.claims.postgres.loop_connection import LoopConnection
from shared.claims.postgres.operating import Operating
from shared.claims.postgres.quarantine import Quarantining
from shared.claims.postgres.reporting import Reporting
from shared.claims.postgres.storages import Storages
from shared.claims.postgres.sweeping import Sweeping
from shared.claims.postgres.waits import Waits
from shared.claims.postgres.watching import Watching

PATIENCE = timedelta(seconds=30)


class PostgresStore(Claiming, Leasing, Sweeping, Operating, Reporting, Quarantining, Watching, Hosts, Storages, Waits):
    """A Store on one pool of connections, none of which is opened before it is needed."""

    def __init__(self, database_url: str, *, stale: timedelta, patience: timedelta = PATIENCE) -> None:
        milliseconds = patience / timedelta(milliseconds=1)
        self._database = Database(
            database_url, statement_timeout_ms=int(milliseconds), lock_timeout_ms=int(milliseconds / 3)
        )
        self._stale = stale

    def open_claim_connection(self) -> LoopConnection:
        """See ReceivingStore.open_claim_connection."""
        return LoopConnection(self._database, stale=self._stale)

    def close(self) -> None:
        """See Store.close."""
        self._database.close()
