"""The renewal of one lease while work goes on, and the moment from which it must be thought lost (I6)."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID

from shared.claims.records import Lease
from shared.claims.states import Reason
from shared.errors import LeaseLostError, RetryableError, ShutdownError, StoreUnavailableError
from shared.logs import get_logger
from worker.stop import StopFlag

RENEWALS_PER_LEASE = 3
RETRIES_PER_RENEWAL = 5
WRITE_RETRY_SECONDS = 0.25


class RenewingStore(Protocol):
    """The part of the store that renewal needs."""

    def renew(self, job_id: str, *, token: UUID, lease: timedelta) -> bool:
        """See LeaseStore.renew."""
        ...


class Renewals:
    """The one thread of a process that renews the leases held, for as long as the `with` block lasts.

    A thread for each lease would cost every job its start and its end. This one is not woken by a new lease: it looks
    by itself often enough for a failed renewal to be repeated, so that a job shorter than that never meets it.
    """

    def __init__(self, length: timedelta) -> None:
        """`length` is that of every lease."""
        self.length = length
        self.interval = length / RENEWALS_PER_LEASE
        self._pause = self.interval / RETRIES_PER_RENEWAL
        self._held: set[LeaseKeeper] = set()
        self._changing = threading.Lock()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._keep_renewing, name="leases", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def begin(self, keeper: "LeaseKeeper") -> None:
        """Renew from now on."""
        with self._changing:
            self._held.add(keeper)

    def end(self, keeper: "LeaseKeeper") -> None:
        """Renew no more; one renewal under way may still end, which changes nothing."""
        with self._changing:
            self._held.discard(keeper)

    def _keep_renewing(self) -> None:
        while not self._over.wait(self._pause.total_seconds()):
            with self._changing:
                held = list(self._held)
            for keeper in held:
                keeper.renew_if_due()


class LeaseKeeper:
    """Has a lease renewed for as long as the `with` block lasts.

    The lease is thought lost when the store says so, or when it could not be renewed for its whole length counted
    from before the last successful renewal, so never later than the database thinks.
    """

    def __init__(
        self,
        lease: Lease,
        *,
        store: RenewingStore,
        renewals: Renewals,
        taken_at: float,
        deadline: float,
        stop: StopFlag,
    ) -> None:
        """`taken_at` and `deadline` are readings of the monotonic clock; the former from before the lease was taken."""
        self._lease = lease
        self._store = store
        self._renewals = renewals
        self._counts_from = taken_at
        self._good_until = taken_at + renewals.length.total_seconds()
        self._deadline = deadline
        self._stop = stop
        self._refused = False

    def __enter__(self) -> Self:
        self._renewals.begin(self)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._renewals.end(self)

    def check(self) -> None:
        """Return when the work may go on; cheap, to be called often and from any thread.

        Raises LeaseLostError, ShutdownError, or RetryableError (timed_out) beyond the job's deadline.
        """
        self.check_held()
        if self._stop.is_set():
            raise ShutdownError("the worker was asked to stop")
        if time.monotonic() >= self._deadline:
            raise RetryableError(Reason.TIMED_OUT, "the attempt took longer than JOB_TIMEOUT_SECONDS")

    def check_held(self) -> None:
        """Raise LeaseLostError when another worker may hold the job by now."""
        if self._refused:
            raise LeaseLostError("the lease was taken back")
        if time.monotonic() >= self._good_until:
            raise LeaseLostError("the lease could not be renewed in time")

    def write(self, change: Callable[[], bool]) -> None:
        """Make a change under the lease, trying again while the database is away and the lease is still good.

        Raises LeaseLostError when the change was refused, or could not be made while it was allowed to be.
        """
        failed = False
        while True:
            try:
                if not change():
                    raise LeaseLostError("the lease was taken back")
            except StoreUnavailableError as error:
                if not failed:
                    get_logger().warning("store.lost", error=str(error))
                failed = True
                self.check_held()
                if self._stop.wait(WRITE_RETRY_SECONDS):
                    raise LeaseLostError("the worker has to stop while the database is away") from None
            else:
                return

    def renew_if_due(self) -> None:
        """Renew the lease when a third of it is over, and until that succeeds; called by its Renewals alone."""
        before = time.monotonic()
        if self._refused or before < self._counts_from + self._renewals.interval.total_seconds():
            return
        length = self._renewals.length
        try:
            renewed = self._store.renew(self._lease.job_id, token=self._lease.token, lease=length)
        except StoreUnavailableError:
            return
        if not renewed:
            self._refused = True
            return
        self._counts_from, self._good_until = before, before + length.total_seconds()
