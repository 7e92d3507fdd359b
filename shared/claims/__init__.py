"""The claim stores: the truth about every job (I1)."""

from datetime import timedelta

from shared.claims.postgres.store import PATIENCE, PostgresStore
from shared.claims.store import Store
from shared.config import Settings
from shared.errors import SettingsError

__all__ = ["open_store"]


def open_store(settings: Settings, *, patience: timedelta = PATIENCE) -> Store:
    """Open the store of DATABASE_URL without connecting yet, so that a database that is away stops nothing.

    `patience` bounds each statement; waiting for a lock is bounded to a third of it.
    """
    if settings.database_url is None:
        raise SettingsError("DATABASE_URL", "is not set; set it in the environment or in .env")
    return PostgresStore(
        settings.database_url.get_secret_value(), stale=settings.seconds("claim_stale"), patience=patience
    )
