"""A claim store with the past of years, and the work that is measured on it: done, timed, and undone."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Event as Stop
from uuid import uuid4

import psycopg
from structlog.testing import capture_logs

from scheduler.sweeper import BATCH as SWEEP_BATCH
from scheduler.sweeper import Sweeper
from shared import clock
from shared.claims.cursor import write_cursor
from shared.claims.postgres.store import PostgresStore
from shared.claims.records import Claim, JobFilter
from shared.config import Settings
from shared.event import Event, StoredArtifact
from shared.intake import Intake
from shared.queue import Queue, connect

STALE_JOBS, CLAIMS, POLLS, LEASES, PRUNED = 1_000, 640, 400, 100, 200
BATCH, POLL_LIMIT, PAGES = 64, 8, 20
STALE, LEASE, SECOND = timedelta(seconds=120), timedelta(seconds=60), timedelta(seconds=1)
NEVER = Stop()

MAKE_STALE = """UPDATE sume_jobs SET wake_at = now() - interval '1 second'
WHERE job_id IN (SELECT 'job_claimed_' || n FROM generate_series(1, %s) AS n)"""
MAKE_DUE = """UPDATE sume_jobs SET wake_at = now() - interval '1 second', polls = 0
WHERE job_id IN (SELECT 'job_expected_' || n FROM generate_series(1, %s) AS n)"""
UNDO_CLAIMS = "DELETE FROM sume_jobs WHERE job_id > 'job_new_' AND job_id < 'job_new_a'"
UNDO_LEASES = (
    """UPDATE sume_jobs SET state = 'claimed', attempts = 1, wake_at = now() + interval '1 day', updated_at = open_since
    WHERE job_id = ANY(%s)""",
    "DELETE FROM sume_timeline WHERE job_id = ANY(%s)",
    "DELETE FROM sume_artifacts WHERE job_id = ANY(%s)",
)


@dataclass(slots=True)
class Stopwatch:
    """Adds up what runs inside its blocks."""

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the block."""
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began


@dataclass(slots=True)
class Grown:
    """One store with its queue; each piece of work returns how many milliseconds it took, without its undoing."""

    database_url: str
    settings: Settings
    """Of a Redis of its own."""
    _store: PostgresStore = field(init=False)
    _queue: Queue = field(init=False)
    _sweeper: Sweeper = field(init=False)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self._store = PostgresStore(self.database_url, stale=STALE)
        self._queue = Queue(self.settings)
        self._sweeper = Sweeper(self._store, self._queue, Intake(self._store, self._queue), stale=STALE)

    def close(self) -> None:
        """Give the connections back."""
        self._store.close()
        self._queue.close()

    def sweep(self) -> float:
        """Sweep claims whose messages are lost, with the scheduler's own sweeper."""
        watch = Stopwatch()
        self._run(MAKE_STALE, STALE_JOBS)
        with connect(self.settings) as client:
            client.flushdb()
        with capture_logs(), watch.running():
            self._sweeper.sweep(NEVER)
        if (sent := self._queue.depth()) != STALE_JOBS:
            raise AssertionError(f"{sent} messages for {STALE_JOBS} stale claims")
        return watch.seconds * 1000

    def claim(self) -> float:
        """Claim new jobs, a full batch at a time."""
        watch = Stopwatch()
        for _ in range(CLAIMS // BATCH):
            batch = [Claim(new_event(next(self._numbers))) for _ in range(BATCH)]
            with watch.running():
                results = self._store.claim_many(batch)
            if not all(result.new for result in results):
                raise AssertionError("a new claim was called a duplicate")
        self._run(UNDO_CLAIMS)
        return watch.seconds * 1000

    def poll(self) -> float:
        """Take expected jobs to ask for, as many at a time as the poller does."""
        watch = Stopwatch()
        self._run(MAKE_DUE, POLLS)
        taken = 0
        with watch.running():
            while due := self._store.due_polls(limit=POLL_LIMIT, interval=timedelta(days=1), maximum=timedelta(days=1)):
                taken += len(due)
        if taken != POLLS:
            raise AssertionError(f"{taken} of {POLLS} due polls")
        return watch.seconds * 1000

    def first_page(self) -> float:
        """List what needs a person first."""
        return self._list(None)

    def deep_page(self) -> float:
        """List on from jobs of a hundred days ago."""
        return self._list(write_cursor(attention=0, updated_at=clock.now() - timedelta(days=100), job_id="job"))

    def _list(self, cursor: str | None) -> float:
        watch = Stopwatch()
        with watch.running():
            for _ in range(PAGES):
                self._store.list_jobs(JobFilter(cursor=cursor))
        return watch.seconds * 1000

    def prune(self) -> float:
        """Delete the details of the oldest jobs that have them: each time others, as they cannot be had back."""
        watch = Stopwatch()
        with watch.running():
            pruned = self._store.prune(older_than=timedelta(days=1), limit=PRUNED, dry_run=False)
        if pruned.jobs != PRUNED:
            raise AssertionError(f"{pruned.jobs} of {PRUNED} jobs pruned")
        return watch.seconds * 1000

    def work(self) -> float:
        """Take leases and finish under them."""
        watch = Stopwatch()
        job_ids = [f"job_claimed_{n}" for n in range(1, LEASES + 1)]
        file = StoredArtifact(0, "a/0.png", 1_000, "a" * 64, "image/png", "image")
        with watch.running():
            for job_id in job_ids:
                token = uuid4()
                self._store.take_lease(job_id, token=token, owner="worker", lease=LEASE, max_attempts=5)
                if not self._store.finish(job_id, [file], token=token, acknowledged=False):
                    raise AssertionError(f"{job_id} could not be finished")
        for statement in UNDO_LEASES:
            self._run(statement, job_ids)
        return watch.seconds * 1000

    def take_stale(self) -> float:
        """Take the same claims from the store alone: sending the messages is most of a sweep."""
        watch = Stopwatch()
        self._run(MAKE_STALE, STALE_JOBS)
        taken = 0
        with watch.running():
            while batch := self._store.overdue_claims(limit=SWEEP_BATCH, stale=STALE):
                taken += len(batch)
        if taken != STALE_JOBS:
            raise AssertionError(f"{taken} of {STALE_JOBS} stale claims")
        return watch.seconds * 1000

    def _run(self, statement: str, *parameters: int | Sequence[str]) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement.encode(), parameters or None)


def new_event(number: int) -> Event:
    """Return the event of a job nobody knows, of the size Sume's have."""
    payload = f'{{"event":"job.completed","number":{number},"padding":"{"x" * 700}"}}'
    return Event(f"job_new_{number:08}", "job.completed", "OK", payload, "webhook", None, None, None)
