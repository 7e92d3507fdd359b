"""What the scheduler's tests pass in place of Sume's API, Redis and people."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeAlias

from shared.claims.records import Message
from shared.errors import QueueUnavailableError
from shared.event import Artifact
from shared.sume.api import JobStatus

STOPPED = threading.Event()
STOPPED.set()
NEVER = threading.Event()
OPEN = JobStatus(ended=None, error=None)
COMPLETED = JobStatus(ended="job.completed", error=None)
FAILED = JobStatus(ended="job.failed", error={"code": "nsfw", "message": "refused"})
PICTURE = Artifact(0, "https://media.sume.com/a.png?signature=x", type="image")

StatusAnswer: TypeAlias = JobStatus | Exception | Callable[[], JobStatus]
ResultAnswer: TypeAlias = Sequence[Artifact] | Exception


class FakeApi:
    """Answers about each job what it was told; others have not ended."""

    def __init__(
        self, statuses: dict[str, StatusAnswer] | None = None, results: dict[str, ResultAnswer] | None = None
    ) -> None:
        self.statuses: dict[str, StatusAnswer] = statuses or {}
        self.results: dict[str, ResultAnswer] = results or {}
        self.asked: list[str] = []
        self.status_urls: list[str | None] = []

    def status(self, job_id: str, *, status_url: str | None = None) -> JobStatus:
        """See SumeApi.status."""
        self.asked.append(job_id)
        self.status_urls.append(status_url)
        answer = self.statuses.get(job_id, OPEN)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, JobStatus) else answer()

    def result(self, job_id: str) -> list[Artifact]:
        """See SumeApi.result."""
        answer = self.results.get(job_id, [PICTURE])
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


class FakeQueue:
    """A Redis that is away, or can be asked this or that no more, when told to be."""

    def __init__(self) -> None:
        self.there = self.readable = self.writable = True
        self.readings = 0
        self.waiting: set[str] = set()
        self.sent: list[Message] = []

    def ping(self) -> None:
        """See Queue.ping."""
        if not self.there:
            raise QueueUnavailableError("Redis: away")

    def waiting_ids(self) -> set[str]:
        """See Queue.waiting_ids."""
        self.ping()
        self.readings += 1
        if not self.readable:
            raise QueueUnavailableError("Redis: away")
        return set(self.waiting)

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """See Queue.enqueue_many."""
        self.ping()
        if not self.writable:
            raise QueueUnavailableError("Redis: read-only")
        self.sent += messages

    @property
    def sent_ids(self) -> list[str]:
        """The jobs whose message was sent, in order."""
        return [message.job_id for message in self.sent]


class RecordingAlerts:
    """Remembers whom people were told of."""

    def __init__(self) -> None:
        self.dead: list[tuple[str, str]] = []

    def job_failed(self, job_id: str, *, event: str, error: str | None) -> bool:
        """Not expected of a scheduler."""
        raise AssertionError(job_id, event, error)

    def job_dead(self, job_id: str, *, reason: str, error: str) -> bool:
        """Note the job."""
        del error
        self.dead.append((job_id, reason))
        return True

    def host_not_allowed(self, host: str, *, job_id: str) -> bool:
        """Not expected of a scheduler."""
        raise AssertionError(host, job_id)

    def host_failing(self, host: str, *, error: str) -> bool:
        """Not expected of a scheduler."""
        raise AssertionError(host, error)

    def storage_unusable(self, *, reason: str, error: str) -> bool:
        """Not expected of a scheduler."""
        raise AssertionError(reason, error)


def seconds(value: float) -> timedelta:
    """Return so many seconds."""
    return timedelta(seconds=value)
