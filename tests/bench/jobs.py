"""What a job costs the worker: 2,000 jobs of one 200 KB file, taken by two workers, against a plain Python loop.

The clock of a run is the database's: it starts when the first lease is taken (or, end to end, when the first delivery
is sent) and ends when the last job is done, so that the start of a process is no part of any figure. Three kinds of
run take turns, each on emptied tables, an emptied Redis and a fresh folder, with all servers, the artifact host and
the load on the same cores:

- `plain loop`: `tests.bench.plain_loop`, one process;
- `filled queue`: `python -m worker --processes 2` waits on an empty queue, which is then put in place full: the jobs
  were claimed and enqueued before, and their list set aside;
- `end to end`: the workers wait on an empty queue; the jobs are delivered, signed, over 32 connections, to
  `python -m api` as fast as it takes them.

After each run every job must be done with exactly its file, of the right SHA-256, and its manifest.
"""

import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, TypeVar

import psycopg
from redis import Redis

from shared import clock
from shared.claims import open_store
from shared.claims.records import Claim, Message
from shared.claims.schema import migrate
from shared.config import child_environment
from shared.event import Event
from shared.queue import Queue
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import Process, python_module
from shared.sandbox.system import settings_of
from shared.sandbox.valkey import Valkey
from shared.sume.payload import parse_delivery
from tests.bench.artifact_host import SIZE, sha256_of
from tests.bench.bench import Bench
from tests.bench.deliveries import sign_bodies
from tests.bench.load import closed_loop
from tests.bench.rounds import interleave
from tests.bench.row import Row, Target

JOBS = 2_000
WORKERS = 2
BATCH = 500
CONNECTIONS = 32
SELDOM_SECONDS = 0.25
"""Between two looks for the last job, whose end the database has noted: looking must cost nothing."""
SOON = timedelta(seconds=30)
LONGEST_RUN = timedelta(minutes=5)
PROJECT = Path(__file__).parents[2]
Item = TypeVar("Item")

PLAIN, FILLED, END_TO_END = "plain loop", "filled queue", "end to end"
FILLED_TARGET = Target(at_least=0.6)
END_TO_END_TARGET = Target(at_least=0.9)

# When the first lease was taken and the last job was done.
SPAN = """
SELECT min(at) FILTER (WHERE state = 'running') AS first, max(at) FILTER (WHERE state = 'done') AS last
FROM sume_timeline
"""
EMPTY = "TRUNCATE sume_jobs, sume_artifacts, sume_timeline, sume_hosts, sume_storage"
NOT_RIGHT = """
SELECT count(*) FROM sume_jobs j LEFT JOIN sume_artifacts a USING (job_id)
WHERE j.state <> 'done' OR j.attempts <> 1 OR a.bytes IS DISTINCT FROM %s
"""
ALL_DONE = """
SELECT NOT EXISTS (SELECT FROM sume_jobs WHERE state = 'claimed')
    AND NOT EXISTS (SELECT FROM sume_jobs WHERE state = 'running')
"""


def measure(bench: Bench, *, jobs: int = JOBS) -> Iterable[Row]:
    """Yield both rows."""
    with Site(bench.folder / "jobs", jobs=jobs) as site:
        runs = {PLAIN: site.plain_loop, FILLED: site.filled_queue, END_TO_END: site.end_to_end}
        compare = [(FILLED, PLAIN), (END_TO_END, FILLED)]
        pairs = interleave(runs, compare=compare, pairs=bench.pairs, say=bench.say)
    name = f"{jobs:,} jobs of one 200 KB file, {WORKERS} workers, filled queue / plain loop"
    yield pairs[FILLED, PLAIN].row(name, target=FILLED_TARGET, unit="jobs/s")
    name = "end to end (deliver, enqueue, download, done) / the row above"
    yield pairs[END_TO_END, FILLED].row(name, target=END_TO_END_TARGET, unit="jobs/s")


class Site:
    """PostgreSQL, Valkey, an artifact host and the deliveries of all jobs."""

    def __init__(self, folder: Path, *, jobs: int) -> None:
        self._folder = folder
        self._root = folder / "artifacts"
        self._postgres, self._valkey = Postgres(), Valkey()
        self._host_port, self._api_port = free_port(), free_port()
        self._environment = {
            "SUME_COM_WEBHOOK_SIGNING_SECRET": "whsec_throwaway-of-the-benchmark",
            "DATABASE_URL": self._postgres.url,
            "REDIS_URL": self._valkey.url,
            "STORAGE_URL": f"file://{self._root}",
            "ARTIFACT_HOSTS": LOOPBACK,
            "ARTIFACT_ALLOW_INSECURE": "true",
        }
        self._settings = settings_of(self._environment)
        self._bodies = {f"job_{number:06}": b"" for number in range(jobs)}
        for job_id in self._bodies:
            self._bodies[job_id] = delivery_body(job_id, host=f"{LOOPBACK}:{self._host_port}")
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._opened.enter_context(self._postgres)
            self._opened.enter_context(self._valkey)
            self._opened.enter_context(self._process("host", "tests.bench.artifact_host", str(self._host_port)))
            migrate(self._postgres.url)
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def plain_loop(self) -> float:
        """Let the plain loop work on all jobs; return jobs a second."""
        self._empty()
        self._claim()
        subprocess.run(
            python_module("tests.bench.plain_loop", self._postgres.url, str(self._root)),
            input="\n".join(self._bodies),
            env=child_environment(PYTHONPATH=str(PROJECT)),
            text=True,
            check=True,
        )
        return self._rate(since=None)

    def filled_queue(self) -> float:
        """Let our workers empty a queue that is full when they see it; return jobs a second."""
        self._empty()
        messages = self._claim()
        waiting = f"rq:queue:{self._settings.queue_name}"
        with closing(Queue(self._settings)) as queue, Redis.from_url(self._valkey.url) as redis:
            for batch in batches(messages):
                queue.enqueue_many(batch)
            redis.rename(waiting, "full")
            with self._workers(queue) as worker:
                redis.rename("full", waiting)
                self._wait_for_all(worker)
        return self._rate(since=None)

    def end_to_end(self) -> float:
        """Deliver all jobs to our api while our workers run; return jobs a second."""
        self._empty()
        secret = self._environment["SUME_COM_WEBHOOK_SIGNING_SECRET"].encode()
        with (
            self._process("api", "api", "--port", str(self._api_port)) as api,
            closing(Queue(self._settings)) as queue,
            self._workers(queue) as worker,
        ):
            api.wait_for_http(f"http://{LOOPBACK}:{self._api_port}/readyz", within=SOON)
            requests = sign_bodies(self._bodies.values(), secret=secret)
            began = clock.now()
            closed_loop(self._api_port, requests, connections=CONNECTIONS)
            self._wait_for_all(worker)
            api.terminate()
        return self._rate(since=began)

    @contextmanager
    def _workers(self, queue: Queue) -> Iterator[Process]:
        """Lend workers that listen."""
        with self._process("worker", "worker", "--processes", str(WORKERS)) as worker:
            worker.wait_for(lambda: queue.workers() == WORKERS, what="listening", within=SOON)
            yield worker
            worker.terminate()

    def _wait_for_all(self, worker: Process) -> None:
        with psycopg.connect(self._postgres.url, autocommit=True) as connection:

            def all_done() -> bool:
                time.sleep(SELDOM_SECONDS)
                return connection.execute(ALL_DONE).fetchone() == (True,)

            worker.wait_for(all_done, what="the last job", within=LONGEST_RUN)

    def _process(self, name: str, module: str, *arguments: str) -> Process:
        env = child_environment(**self._environment, PYTHONPATH=str(PROJECT))
        return Process(python_module(module, *arguments), name=name, folder=self._folder, env=env)

    def _empty(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)
        with Redis.from_url(self._valkey.url) as redis:
            redis.flushall()
        with psycopg.connect(self._postgres.url, autocommit=True) as connection:
            connection.execute(EMPTY)
            connection.execute("CHECKPOINT")  # so that none is due in one run for what another wrote

    def _claim(self) -> list[Message]:
        events = [parse_delivery(body) for body in self._bodies.values()]
        with closing(open_store(self._settings)) as store:
            for batch in batches(events):
                store.claim_many([Claim(event) for event in batch if isinstance(event, Event)])
        return [Message(job_id, "job.completed", "OK", 1) for job_id in self._bodies]

    def _rate(self, *, since: datetime | None) -> float:
        """Return jobs a second, once it is certain that every job was done, and how it had to be."""
        with psycopg.connect(self._postgres.url) as connection:
            (first, last), (wrong,) = (
                connection.execute(SPAN).fetchone() or (None, None),
                connection.execute(NOT_RIGHT, (SIZE,)).fetchone() or (None,),
            )
        if wrong != 0 or first is None or last is None:
            raise RuntimeError(f"{wrong} jobs are not done, or not at the first attempt, or without their file")
        for job_id in self._bodies:
            content = (self._root / job_id / f"00-{job_id}.png").read_bytes()
            manifest = json.loads((self._root / job_id / "manifest.json").read_bytes())
            told = {hashlib.sha256(content).hexdigest(), *(stored["sha256"] for stored in manifest["artifacts"])}
            if told != {sha256_of(path_of(job_id))}:
                raise RuntimeError(f"{job_id} holds another file")
        lasted: timedelta = last - (since or first)
        return len(self._bodies) / lasted.total_seconds()


def path_of(job_id: str) -> str:
    """Return where the host has a job's file."""
    return f"/files/{job_id}.png"


def delivery_body(job_id: str, *, host: str) -> bytes:
    """Return the body of a delivery as Sume's are, with one file."""
    artifact = {
        "url": f"http://{host}{path_of(job_id)}",
        "type": "image",
        "content_type": "image/png",
        "filename": f"{job_id}.png",
        "size_bytes": SIZE,
        "sha256": sha256_of(path_of(job_id)),
    }
    envelope = {
        "event": "job.completed",
        "job_id": job_id,
        "status": "OK",
        "status_url": f"http://{host}/v1/jobs/{job_id}/status",
        "result": {"artifacts": [artifact]},
    }
    return json.dumps(envelope).encode()


def batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield the items in pieces that one statement or pipeline may hold."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
