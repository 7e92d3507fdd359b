"""All artifacts of one attempt, several at once, then their manifest."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeAlias, TypeVar

from shared.claims.records import Lease
from shared.errors import AttemptError, HeldError, ParkedError, PermanentError, ShutdownError
from shared.event import Artifact, StoredArtifact
from shared.logs import get_logger
from shared.storage.storage import Check
from worker.circuit import Circuits
from worker.failures import ExpiredUrlError
from worker.manifest import manifest_begun
from worker.publish import Publisher

Result = TypeVar("Result")
Record: TypeAlias = Callable[[StoredArtifact], None]
"""Keeps what was verified about one published file; raises LeaseLostError when the lease is no longer held."""

WEIGHT: tuple[type[AttemptError], ...] = (PermanentError, ExpiredUrlError, ParkedError, HeldError, AttemptError)
"""Which of several failures decides about the job: the first of these."""


def store_artifacts(  # noqa: PLR0913 - each is another part of an attempt
    artifacts: Sequence[Artifact],
    *,
    lease: Lease,
    publisher: Publisher,
    circuits: Circuits,
    concurrency: int,
    check: Check,
    record: Record,
) -> tuple[StoredArtifact, ...]:
    """Store every artifact and then the manifest; return the stored ones by index.

    A file that fails does not stop the others: they are published and recorded, then the weightiest failure is
    raised. `check` runs in several threads and whatever it raises stops all of them; `record` runs in the caller's
    thread, once for each file that the lease does not know yet. When this returns or raises, no thread works on the
    lease any more: half a second after `check` raised, or after the system has taken what was being written.
    """
    alone = len(artifacts) == 1
    unrecorded: list[StoredArtifact] = []

    def keep(artifact: StoredArtifact) -> None:
        """Record a file whose name is durable; told of only then, so that an attempt that begins anew tells it once."""
        record(artifact)
        get_logger().info(
            "artifact.published",
            job_id=lease.job_id,
            attempt=lease.attempt,
            path=artifact.path,
            bytes=artifact.bytes,
        )

    with manifest_begun(publisher.storage, lease=lease, check=check) as write_manifest:
        stored = publish_all(
            artifacts,
            lease=lease,
            publish=partial(publisher.publish, lease=lease, circuits=circuits, before_manifest=alone),
            concurrency=concurrency,
            stop=StopSignal(check),
            record=unrecorded.append if alone else keep,
        )
        # The name of a single file becomes durable with that of its manifest, and only then it may be recorded (I8):
        # to sync their folder once instead of twice takes a job a tenth less time.
        write_manifest(stored, settle=alone)
    for artifact in unrecorded:
        keep(artifact)
    return tuple(stored)


def publish_all(
    artifacts: Sequence[Artifact],
    *,
    lease: Lease,
    publish: Callable[..., StoredArtifact],
    concurrency: int,
    stop: "StopSignal",
    record: Record,
) -> list[StoredArtifact]:
    """Store every artifact; return the stored ones by index."""
    stored: list[StoredArtifact] = []
    failures: list[AttemptError] = []
    log = get_logger().bind(job_id=lease.job_id, attempt=lease.attempt)
    with executor_for(len(artifacts), concurrency=concurrency) as pool:
        try:
            work = {pool.submit(publish, one, check=stop.check): one.index for one in artifacts}
            for future in as_completed(work):
                try:
                    artifact = future.result()
                except AttemptError as error:
                    log.info("artifact.failed", index=work[future], reason=error.reason, error=str(error))
                    failures.append(error)
                    continue
                if artifact in lease.artifacts:
                    log.info("artifact.kept", path=artifact.path, bytes=artifact.bytes)
                else:
                    record(artifact)
                stored.append(artifact)
        except BaseException:  # a lost lease, a shutdown, or RQ's timeout, which a signal raises in this thread
            stop.set()
            raise
    if failures:
        raise weightiest(failures)
    return sorted(stored, key=lambda artifact: artifact.index)


def executor_for(count: int, *, concurrency: int) -> Executor:
    """Return what downloads so many files: threads, or for a single file the thread that waits for it anyway."""
    return ThreadPoolExecutor(concurrency, thread_name_prefix="download") if count > 1 else CallingThread()


class CallingThread(Executor):
    """Does the work where it is submitted: a thread started for its one file costs a job 5 % more, of the CPU 8 %."""

    def submit(self, work: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Do the work; what it raises is raised by the future, as from any executor."""
        future: Future[Result] = Future()
        try:
            future.set_result(work(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - RQ's timeout among them, which a signal raises in this thread
            future.set_exception(error)
        return future


class StopSignal:
    """The caller's check, which also raises once the attempt has ended in another thread."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._stopped = threading.Event()

    def check(self) -> None:
        """Raise when the work must stop."""
        if self._stopped.is_set():
            raise ShutdownError("the attempt has ended")
        self._check()

    def set(self) -> None:
        """End all work of the attempt."""
        self._stopped.set()


def weightiest(failures: Sequence[AttemptError]) -> AttemptError:
    """Return the failure that decides about the job, the first of its kind."""
    return min(failures, key=lambda error: next(rank for rank, kind in enumerate(WEIGHT) if isinstance(error, kind)))
