"""The one place where a job is given up: buried in the store, logged, told to people (I10)."""

from typing import Protocol
from uuid import UUID

from shared.alerts import Alerts
from shared.claims.states import Reason
from shared.logs import get_logger

log = get_logger()


class BuryingStore(Protocol):
    """The part of the store that burying needs."""

    def bury(self, job_id: str, *, token: UUID | None, reason: Reason, error: str) -> bool:
        """See LeaseStore.bury."""
        ...


def bury(job_id: str, *, store: BuryingStore, alerts: Alerts, token: UUID | None, reason: Reason, error: str) -> bool:
    """Give the job up and tell people; False when the lease was no longer ours (then nothing changed).

    The alert comes after the state, so a process that dies in between buries without an alert: `list` shows it.
    Raises StoreUnavailableError.
    """
    if not store.bury(job_id, token=token, reason=reason, error=error):
        return False
    log.error("job.buried", job_id=job_id, reason=reason.value, error=error)
    alerts.job_dead(job_id, reason=reason.value, error=error)
    return True
