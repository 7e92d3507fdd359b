"""The proof: every claimed job is done with its files as recorded, or is visibly open.

Open means claimed, running or dead: `list` shows it with its reason. A pruned job keeps no record of its files, so
there is nothing left to compare them with.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from shared.claims.records import AuditRecord, JobRecord
from shared.claims.storages import StorageStore
from shared.claims.store import OperatorStore
from shared.errors import AttemptError, ShutdownError
from shared.event import StoredArtifact
from shared.storage.paths import ID_FILE, manifest_path
from shared.storage.recognition import WrongStorageError, compare
from shared.storage.storage import Storage

THREADS = 4
AHEAD = 64
"""Jobs read from the store before their files have been read."""

Facts: TypeAlias = AuditRecord | JobRecord
Step: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a claimed job should have and has not."""

    job_id: str
    """Empty where the storage itself is the problem."""
    path: str
    problem: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found."""

    checked: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is accounted for."""
        return not self.problems


class AuditedStore(OperatorStore, StorageStore, Protocol):
    """The part of the store that is compared with the storage."""


class Auditor:
    """Compares the store with the storage while both are in use."""

    def __init__(self, store: AuditedStore, storage: Storage) -> None:
        self._store = store
        self._storage = storage
        self._ended = threading.Event()

    def audit(self, *, step: Step = lambda: None) -> Audit:
        """Check every job with an event, calling `step` after each. Raises StoreUnavailableError.

        A problem is reported only when a second look finds it too, at a job that did not change in between, so
        that a job being worked on is no false alarm.
        """
        checked, problems = 0, self._storage_problems()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="audit") as pool:
            try:
                for future in self._judgements(pool):
                    problems += future.result()
                    checked += 1
                    step()
            except BaseException:
                self._ended.set()  # or leaving would wait for files of any size to be read
                pool.shutdown(cancel_futures=True)
                raise
        return Audit(checked, tuple(problems))

    def _storage_problems(self) -> list[Problem]:
        """Say first that this is the wrong storage: it explains all that is missing."""
        try:
            compare(self._storage, self._store)
        except (WrongStorageError, AttemptError) as error:
            return [Problem("", ID_FILE, str(error))]
        return []

    def _judgements(self, pool: ThreadPoolExecutor) -> Iterator[Future[list[Problem]]]:
        """Yield a judgement of each job in turn, with a bounded number under way."""
        under_way: deque[Future[list[Problem]]] = deque()
        for record in self._store.audit():
            under_way.append(pool.submit(self._judge, record))
            if len(under_way) == AHEAD:
                yield under_way.popleft()
        yield from under_way

    def _judge(self, record: AuditRecord) -> list[Problem]:
        return self._confirm(record.job_id) if self._compare(record) else []

    def _confirm(self, job_id: str) -> list[Problem]:
        """Compare until the job stays the same meanwhile."""
        before = self._store.get_job(job_id)
        while before is not None:
            problems = self._compare(before)
            after = self._store.get_job(job_id)
            if not problems or (after is not None and same(before, after)):
                return problems
            before = after
        return []

    def _compare(self, job: Facts) -> list[Problem]:
        """Return everything that is wrong with the files of a done job."""
        if job.state != "done" or pruned(job) or (job.status != "OK" and not job.artifacts):
            return []
        found = [(artifact.path, self._file_problem(artifact)) for artifact in job.artifacts]
        found.append((manifest_path(job.job_id), self._manifest_problem(job)))
        return [Problem(job.job_id, path, problem) for path, problem in found if problem is not None]

    def _file_problem(self, artifact: StoredArtifact) -> str | None:
        try:
            return self._storage.find_problem(artifact, check=self._check)
        except AttemptError as error:
            return str(error)

    def _manifest_problem(self, job: Facts) -> str | None:
        try:
            content = self._storage.read(manifest_path(job.job_id))
        except AttemptError as error:
            return str(error)
        if content is None:
            return "missing"
        if described(content) != (job.job_id, job.status, facts(job.artifacts)):
            return "does not agree with what is recorded"
        return None

    def _check(self) -> None:
        if self._ended.is_set():
            raise ShutdownError("the audit was stopped")


def pruned(job: Facts) -> bool:
    """Whether the job's record of its files is gone."""
    return job.pruned if isinstance(job, AuditRecord) else job.pruned_at is not None


def same(before: JobRecord, after: JobRecord) -> bool:
    """Whether nothing changed but how often the job was delivered."""
    return (before.state, before.updated_at, before.pruned_at) == (after.state, after.updated_at, after.pruned_at)


def facts(artifacts: Sequence[StoredArtifact]) -> list[tuple[object, ...]]:
    """Return what a manifest must say of the files."""
    return [(artifact.index, artifact.path, artifact.bytes, artifact.sha256) for artifact in artifacts]


def described(manifest: bytes) -> tuple[object, ...] | None:
    """Return job, status and files as a manifest names them, None for what is no manifest."""
    try:
        document: Any = json.loads(manifest)
        files = [(entry["index"], entry["path"], entry["bytes"], entry["sha256"]) for entry in document["artifacts"]]
        return document["job_id"], document["status"], files
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
