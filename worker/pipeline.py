"""The way of a job from its message to its outcome, which is written under its lease and nowhere else (I5).

message ─▶ take the lease ─▶ work on it ─▶ done
                │                │
                ▼                └─ an error says what: released · buried · parked · handed back
         nothing to do              a lost lease changes nothing
"""

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import uuid4

from rq.timeouts import JobTimeoutException
from structlog.contextvars import bound_contextvars

from shared.burial import bury
from shared.claims.records import Lease, Message
from shared.claims.states import Reason
from shared.config import Settings
from shared.errors import (
    AttemptError,
    HeldError,
    LeaseLostError,
    ParkedError,
    PermanentError,
    QueueUnavailableError,
    RetryableError,
    ShutdownError,
    StoreUnavailableError,
)
from shared.intake import Producer
from shared.logs import get_logger
from shared.storage.recognition import WrongStorageError
from shared.sume.payload import is_job_id
from worker.attempt import Tools, Work, work_on
from worker.lease import LeaseKeeper, Renewals
from worker.listing import AskAgainError
from worker.stop import StopFlag
from worker.verdict import back_off, is_final, spread

STORE_RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Waits between tries to take a lease while the database is away; the last one repeats."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Works on one job at a time, in the calling thread."""

    tools: Tools
    producer: Producer
    settings: Settings
    stop: StopFlag
    renewals: Renewals

    def process(self, job_id: str) -> AttemptError | None:
        """Make one attempt at a job; return the failure that ended it, None after anything that is no failure.

        A job that is not claimed, not due yet or held by another worker is left alone, so that any number of messages
        about it are harmless. Raises StoreUnavailableError when the database is away and the worker has to stop, and
        RQ's timeout when that strikes outside the work; then the lease runs out, or the sweep sends the job again.
        """
        if not is_job_id(job_id):  # somebody else wrote it into Redis; no job can have it
            get_logger().error("message.refused", problem="its argument is not a job_id")
            return None
        before = time.monotonic()
        lease = self._take(job_id, self.renewals.length)
        if lease is None:
            get_logger().debug("lease.refused", job_id=job_id)
            return None
        keeper = LeaseKeeper(
            lease,
            store=self.tools.store,
            renewals=self.renewals,
            taken_at=before,
            deadline=before + self.settings.job_timeout_seconds,
            stop=self.stop,
        )
        with bound_contextvars(job_id=job_id, attempt=lease.attempt), keeper:
            get_logger().info("lease.taken", event_name=lease.event, status=lease.status)
            return self._attempt(lease, keeper, since=before)

    def _take(self, job_id: str, length: timedelta) -> Lease | None:
        token, owner = uuid4(), f"{socket.gethostname()}.{os.getpid()}"
        failures = 0
        while True:
            try:
                return self.tools.store.take_lease(
                    job_id, token=token, owner=owner, lease=length, max_attempts=self.settings.max_attempts
                )
            except StoreUnavailableError as error:
                if not failures:
                    get_logger().warning("store.lost", error=str(error), job_id=job_id)
                failures += 1
                if self.stop.wait(STORE_RETRY_SECONDS[min(failures, len(STORE_RETRY_SECONDS)) - 1]):
                    raise

    def _attempt(self, lease: Lease, keeper: LeaseKeeper, *, since: float) -> AttemptError | None:
        """Work, and write what came of it; each branch is one outcome."""
        outcome = Outcome(lease, self, keeper, since)
        try:
            try:
                work = self._work(lease, keeper)
                outcome.done(work)
            except ShutdownError:
                outcome.handed_back()
            except ParkedError as error:
                outcome.parked(error)
            except HeldError as error:
                outcome.held(error)
            except (PermanentError, RetryableError) as error:
                outcome.failed(error)
                return error
        except LeaseLostError as error:
            get_logger().warning("lease.lost", seconds=outcome.seconds(), error=str(error))
        return None

    def _work(self, lease: Lease, keeper: LeaseKeeper) -> Work:
        """Do the work; what goes wrong in a way nobody foresaw is a strike against the job, not the worker."""
        if lease.exhausted:
            reason = lease.previous_reason or Reason.WORKER_LOST
            raise PermanentError(lease.previous_error or "every attempt failed", reason=reason)
        try:
            self.tools.guard.recognise()
            return work_on(lease, tools=self.tools, keeper=keeper)
        except (AttemptError, LeaseLostError, ShutdownError):
            raise
        except WrongStorageError as error:
            self.stop.set()
            raise HeldError(Reason.STORAGE_FAILED, str(error)) from None
        except JobTimeoutException:
            raise RetryableError(Reason.TIMED_OUT, "the attempt took longer than JOB_TIMEOUT_SECONDS") from None
        except Exception as error:  # noqa: BLE001 - a defect of ours must not be repeated for ever
            get_logger().exception("attempt.crashed", error=type(error).__name__)
            raise RetryableError(Reason.WORKER_LOST, f"{type(error).__name__}; see the worker's log") from None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Writes the end of one attempt and logs it as one wide line. Every method raises LeaseLostError."""

    lease: Lease
    pipeline: Pipeline
    keeper: LeaseKeeper
    since: float

    def seconds(self) -> float:
        """Return how long the attempt has lasted."""
        return round(time.monotonic() - self.since, 3)

    def done(self, work: Work) -> None:
        """Finish the job."""
        finish = partial(
            self.pipeline.tools.store.finish,
            self.lease.job_id,
            work.artifacts,
            token=self.lease.token,
            acknowledged=work.acknowledged,
        )
        self.keeper.write(finish)
        get_logger().info(
            "job.done",
            status=self.lease.status,
            seconds=self.seconds(),
            files=len(work.artifacts),
            bytes=sum(stored.bytes for stored in work.artifacts),
        )

    def failed(self, error: AttemptError) -> None:
        """Bury the job after its last attempt, release it to be tried again otherwise."""
        if is_final(error, lease=self.lease, settings=self.pipeline.settings):
            self._bury(error)
            return
        wait = back_off(self.lease, settings=self.pipeline.settings)
        if isinstance(error, AskAgainError):
            wait = max(wait, min(error.wait, self.pipeline.settings.seconds("poll_max")))
        self.keeper.write(
            partial(
                self.pipeline.tools.store.release,
                self.lease.job_id,
                token=self.lease.token,
                reason=Reason(error.reason),
                error=str(error),
                wait=wait,
            )
        )
        get_logger().warning(
            "job.released",
            reason=error.reason,
            error=str(error),
            seconds=self.seconds(),
            wait_seconds=round(wait.total_seconds(), 1),
        )

    def parked(self, error: ParkedError) -> None:
        """Put the job aside until a person changes a setting, and tell one."""
        self._hand_back(error, wait=self.pipeline.settings.seconds("retry_max"))
        get_logger().warning("job.parked", reason=error.reason, error=str(error), seconds=self.seconds())
        self.pipeline.tools.alerts.host_not_allowed(error.host, job_id=self.lease.job_id)

    def held(self, error: HeldError) -> None:
        """Let the job wait for something that is not its own affair."""
        self._hand_back(error, wait=spread(self.pipeline.settings.seconds("retry_max")), waits_for_host=error.host)
        get_logger().info("job.held", reason=error.reason, error=str(error), seconds=self.seconds())
        if error.host is None:
            self.pipeline.tools.alerts.storage_unusable(reason=error.reason, error=str(error))

    def handed_back(self) -> None:
        """Leave the job to another worker, because this one has to stop."""
        error = AttemptError(Reason.WORKER_STOPPED, "the worker was asked to stop")
        self._hand_back(error, wait=timedelta(0))
        get_logger().info("job.handed_back", seconds=self.seconds())
        message = Message(self.lease.job_id, self.lease.event, self.lease.status, self.lease.attempt)
        try:
            self.pipeline.producer.enqueue_many([message])
        except QueueUnavailableError as unavailable:
            get_logger().warning("enqueue.failed", messages=1, error=str(unavailable))  # the sweep sends it (I1)

    def _hand_back(self, error: AttemptError, *, wait: timedelta, waits_for_host: str | None = None) -> None:
        self.keeper.write(
            partial(
                self.pipeline.tools.store.hand_back,
                self.lease.job_id,
                token=self.lease.token,
                reason=Reason(error.reason),
                error=str(error),
                wait=wait,
                waits_for_host=waits_for_host,
            )
        )

    def _bury(self, error: AttemptError) -> None:
        give_up = partial(
            bury,
            self.lease.job_id,
            store=self.pipeline.tools.store,
            alerts=self.pipeline.tools.alerts,
            token=self.lease.token,
            reason=Reason(error.reason),
            error=str(error),
        )
        with bound_contextvars(seconds=self.seconds()):
            self.keeper.write(give_up)
