"""A pipeline on a real database, a real storage and a simulated Sume; only people and Redis are played."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from shared.claims.records import Claim, JobRecord, Message
from shared.config import Settings
from shared.errors import AttemptError, QueueUnavailableError
from shared.event import Event
from shared.logs import Redactor
from shared.sandbox.sume import Job as SumeJob
from shared.sandbox.sume import Sume
from shared.storage.paths import ID_FILE
from shared.storage.storage import Storage
from shared.sume.payload import parse_delivery
from tests.claims.postgres_subject import PostgresSubject
from worker.handler import Handler, Job
from worker.pipeline import Pipeline
from worker.stop import StopFlag
from worker.wiring import open_pipeline

SECRET = "throwaway-handler-secret"
FIRST, SECOND = b"\x89PNG\r\n\x1a\n first", b"\x89PNG\r\n\x1a\n second"


@dataclass
class PlayedPeople:
    """Alerts that are kept, and reach somebody or not."""

    reached: bool = True
    told: list[tuple[str, ...]] = field(default_factory=list)

    def job_failed(self, job_id: str, *, event: str, error: str | None) -> bool:
        """See Alerts.job_failed."""
        return self._tell("failed", job_id, event, error or "")

    def job_dead(self, job_id: str, *, reason: str, error: str) -> bool:
        """See Alerts.job_dead."""
        return self._tell("dead", job_id, reason, error)

    def host_not_allowed(self, host: str, *, job_id: str) -> bool:
        """See Alerts.host_not_allowed."""
        return self._tell("host", job_id, host)

    def host_failing(self, host: str, *, error: str) -> bool:
        """See Alerts.host_failing."""
        return self._tell("failing", host, error)

    def storage_unusable(self, *, reason: str, error: str) -> bool:
        """See Alerts.storage_unusable."""
        return self._tell("storage", reason, error)

    def _tell(self, *what: str) -> bool:
        self.told.append(what)
        return self.reached


@dataclass
class PlayedQueue:
    """A queue that keeps what it was sent, or is away."""

    away: bool = False
    sent: list[Message] = field(default_factory=list)

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """See Producer.enqueue_many."""
        if self.away:
            raise QueueUnavailableError("Redis: away")
        self.sent += messages


@dataclass
class Bench:
    """One pipeline, and what is needed to bring jobs to it and to see what came of them."""

    pipeline: Pipeline
    subject: PostgresSubject
    sume: Sume
    people: PlayedPeople
    queue: PlayedQueue
    stop: StopFlag

    def claim(self, job_id: str, **fields: object) -> SumeJob:
        """Let Sume finish a job, and claim it as the receiver does."""
        job = self.sume.add_job(job_id, **fields)  # type: ignore[arg-type]  # the fields of Job
        event = parse_delivery(job.delivery_body())
        assert isinstance(event, Event)
        self.subject.store.claim_many([Claim(event)])
        return job

    def attempt(self, job_id: str = "job_demo") -> AttemptError | None:
        """Make one attempt, as a message causes it."""
        return self.pipeline.process(job_id)

    def due(self) -> None:
        """Let every back-off pass."""
        self.subject.let_pass(timedelta(hours=1))

    def record(self, job_id: str = "job_demo") -> JobRecord:
        """Return a job as people see it."""
        record = self.subject.store.get_job(job_id)
        assert record is not None
        return record

    def outcome(self, job_id: str = "job_demo") -> tuple[str, str | None, int]:
        """Return a job's state, reason and attempts."""
        record = self.record(job_id)
        return record.state, record.reason, record.attempts

    def files(self) -> dict[str, bytes]:
        """Return every file below the storage root but id and manifests, partials included."""
        root = Path(self.pipeline.tools.locate("."))
        found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        ours = ("manifest.json", ID_FILE)
        return {name: content for name, content in found.items() if not name.endswith(ours)}

    def handled_by(self, function: Callable[[Job], object]) -> None:
        """Use a handler from now on."""
        self.change_tools(handler=Handler(function, Redactor([SECRET])))

    def change_tools(self, **changes: object) -> None:
        """Use other tools from now on."""
        tools = replace(self.pipeline.tools, **changes)  # type: ignore[arg-type]  # the fields of Tools
        self.pipeline = replace(self.pipeline, tools=tools)

    def change_settings(self, **changes: object) -> None:
        """Judge by other settings from now on."""
        settings = self.pipeline.settings.model_copy(update=changes)
        self.pipeline = replace(self.pipeline, settings=settings)

    @property
    def storage(self) -> Storage:
        """The storage the files go to."""
        return self.pipeline.tools.publisher.storage


@contextmanager
def open_bench(settings: Settings, sume: Sume) -> Iterator[Bench]:
    """Lend a bench on the database of the settings."""
    assert settings.database_url is not None
    people, queue, stop = PlayedPeople(), PlayedQueue(), StopFlag()
    subject = PostgresSubject(settings.database_url.get_secret_value())
    try:
        with open_pipeline(settings, redactor=Redactor(), stop=stop) as pipeline:
            played = replace(pipeline, tools=replace(pipeline.tools, alerts=people), producer=queue)
            yield Bench(played, subject, sume, people, queue, stop)
    finally:
        subject.store.close()
