"""Claims a second, against pgbench, a route that does nothing, and the receiver most people would write."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import psycopg
import redis

from shared.claims.schema import migrate
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.postgres import Postgres
from shared.sandbox.valkey import Valkey
from tests.bench import pgbench, receivers
from tests.bench.bench import Bench
from tests.bench.deliveries import signed_requests
from tests.bench.load import closed_loop
from tests.bench.receivers import SECRET
from tests.bench.rounds import interleave
from tests.bench.row import Row, Target

CONNECTIONS = 32
WARM_UP, REQUESTS, NAIVE_REQUESTS = 500, 8_000, 1_000
PGBENCH_SECONDS = 4
STORM_KEYS, STORM_SHARE = 100, 0.9
DRAIN_WITHIN_SECONDS = 10

STOPPED, ENQUEUED, STORM = "redis stopped", "enqueued", "redelivery storm"
NOOP, NAIVE, PGBENCH = "no-op", "naive", "pgbench"

NOTES = {
    (
        STOPPED,
        NOOP,
    ): "a delivery takes 75 µs of the one interpreter where this no-op takes 70: signature, JSON, claim and "
    "log line weigh what FastAPI's layers do",
    (
        STORM,
        STOPPED,
    ): "both fill the one interpreter: a duplicate costs it what a new job does, and PostgreSQL, which it "
    "costs half, limits neither",
}

ROWS: Sequence[tuple[str, str, str, float]] = (
    ("claims, new keys, Redis stopped / pgbench", STOPPED, PGBENCH, 1.0),
    ("claims, new keys, enqueued and drained / pgbench", ENQUEUED, PGBENCH, 0.6),
    ("receiver, Redis stopped / FastAPI no-op", STOPPED, NOOP, 0.9),
    ("receiver with enqueue / FastAPI no-op", ENQUEUED, NOOP, 0.55),
    ("receiver with enqueue / naive receiver", ENQUEUED, NAIVE, 15.0),
    ("redelivery storm / new keys, Redis stopped", STORM, STOPPED, 1.1),
)


def measure(bench: Bench) -> Iterator[Row]:
    """Compare them all in the same rounds; raises when a claim, a delivery or a message is missing."""
    with Scene(bench) as scene:
        runs: dict[str, Callable[[], float]] = {
            PGBENCH: scene.pgbench,
            STOPPED: scene.new_keys_redis_stopped,
            ENQUEUED: scene.new_keys_enqueued,
            NOOP: scene.noop,
            NAIVE: scene.naive,
            STORM: scene.storm,
        }
        found = interleave(runs, compare=[(a, b) for _, a, b, _ in ROWS], pairs=bench.pairs, say=bench.say)
    for name, ours, limit, target in ROWS:
        yield found[ours, limit].row(
            name, target=Target(at_least=target), unit="claims/s", note=NOTES.get((ours, limit), "")
        )


@dataclass(slots=True)
class Scene:
    """One PostgreSQL with fsync on, one Valkey, and every receiver, all running at once but used in turn."""

    bench: Bench
    postgres: Postgres = field(default_factory=Postgres)
    valkey: Valkey = field(default_factory=Valkey)
    running: dict[str, receivers.Receiver] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _opened: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.enter_context(self.postgres)
            opened.enter_context(self.valkey)
            migrate(self.postgres.url)
            nowhere = f"redis://{LOOPBACK}:{free_port()}/0"
            start = partial(receivers.ours, folder=self.bench.folder, database_url=self.postgres.url)
            other = partial(receivers.other, folder=self.bench.folder)
            begin: dict[str, Callable[[], receivers.Receiver]] = {
                STOPPED: lambda: start(STOPPED, redis_url=nowhere),
                ENQUEUED: lambda: start(ENQUEUED, redis_url=self.valkey.url),
                NOOP: lambda: other("noop"),
                NAIVE: lambda: other("naive", self.postgres.url, self.valkey.url, SECRET),
            }
            for name, begun in begin.items():
                self.running[name] = begun()
                opened.callback(self.running[name].process.kill)
                self._send(name, self._fresh(WARM_UP))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def pgbench(self) -> float:
        """Run pgbench."""
        self._empty()
        return pgbench.run(self.postgres, database="postgres", folder=self.bench.folder, seconds=PGBENCH_SECONDS)

    def noop(self) -> float:
        """Ask the route that does nothing."""
        return self._send(NOOP, self._fresh(REQUESTS))

    def naive(self) -> float:
        """Deliver new jobs to the naive receiver."""
        self._empty()
        return self._counted(NAIVE, self._fresh(NAIVE_REQUESTS))

    def new_keys_redis_stopped(self) -> float:
        """Deliver new jobs while nothing answers where Redis should be."""
        self._empty()
        return self._counted(STOPPED, self._fresh(REQUESTS))

    def new_keys_enqueued(self) -> float:
        """Deliver new jobs; the clock stops when the last message has arrived in Redis."""
        self._empty()
        requests = signed_requests(self._fresh(REQUESTS), secret=SECRET.encode())
        began = time.perf_counter()
        closed_loop(self.running[ENQUEUED].port, requests, connections=CONNECTIONS)
        self._await_messages(REQUESTS)
        rate = REQUESTS / (time.perf_counter() - began)
        self._expect_stored(ENQUEUED, jobs=REQUESTS, deliveries=REQUESTS)
        return rate

    def storm(self) -> float:
        """Deliver a few jobs again and again among new ones."""
        self._empty()
        repeated = [f"job_storm_{number}" for number in range(STORM_KEYS)]
        fresh = iter(self._fresh(REQUESTS))
        every = round(1 / (1 - STORM_SHARE))
        job_ids = [repeated[n % STORM_KEYS] if n % every else next(fresh) for n in range(REQUESTS)]
        return self._counted(STORM, job_ids)

    def _fresh(self, count: int) -> list[str]:
        return [f"job_bench_{next(self._numbers):08}" for _ in range(count)]

    def _send(self, name: str, job_ids: Sequence[str]) -> float:
        port = self.running[STOPPED if name == STORM else name].port
        return closed_loop(port, signed_requests(job_ids, secret=SECRET.encode()), connections=CONNECTIONS).rate

    def _counted(self, name: str, job_ids: Sequence[str]) -> float:
        """Deliver, and see that every delivery was counted under its job."""
        rate = self._send(name, job_ids)
        self._expect_stored(name, jobs=len(set(job_ids)), deliveries=len(job_ids))
        return rate

    def _expect_stored(self, name: str, *, jobs: int, deliveries: int) -> None:
        with psycopg.connect(self.postgres.url) as connection:
            found = connection.execute("SELECT count(*), sum(deliveries) FROM sume_jobs").fetchone()
        if found != (jobs, deliveries):
            raise RuntimeError(f"{name}: {jobs} jobs and {deliveries} deliveries were answered 204; stored are {found}")

    def _await_messages(self, count: int) -> None:
        deadline = time.monotonic() + DRAIN_WITHIN_SECONDS
        with redis.Redis.from_url(self.valkey.url) as client:
            while (found := client.llen("rq:queue:sume")) != count:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{count} new jobs were answered 204, and {found} messages are in Redis")
                time.sleep(0.001)

    def _empty(self) -> None:
        """Let every run begin with empty tables, on disk, so that none pays for another's writing."""
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute("TRUNCATE sume_jobs CASCADE")
            connection.execute("CHECKPOINT")
        with redis.Redis.from_url(self.valkey.url) as client:
            client.flushall()
