"""What repairs, lists and claims cost among three million jobs, against the same among thirty thousand."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import TypeAlias

import psycopg

from shared.claims.schema import migrate
from shared.config import Settings
from shared.sandbox.postgres import Postgres
from shared.sandbox.valkey import Valkey
from tests.bench.bench import Bench
from tests.bench.grown import CLAIMS, LEASES, PAGES, POLLS, PRUNED, STALE_JOBS, Grown
from tests.bench.rounds import interleave
from tests.bench.row import Row, Target
from tests.claims.crowd import fill

MANY, FEW = 3_000_000, 30_000
OPENED = 2_000
AS_DEAR, THRICE = Target(at_most=1.5), Target(at_most=3)
REPEATS = 3
"""So that a run is long enough to tell whether others were at work."""

# Everything is in memory and nothing is synced: what it costs to reach the rows is compared, not disks.
OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "3GB",
    "maintenance_work_mem": "512MB",
    "work_mem": "256MB",
    "max_wal_size": "8GB",
}
WARM = (
    "CREATE EXTENSION pg_prewarm",
    "SELECT pg_prewarm(oid) FROM pg_class WHERE relname LIKE 'sume%' AND relkind IN ('r', 'i')",
)

Work: TypeAlias = Callable[[Grown], float]
ROWS: Sequence[tuple[str, Work, Target]] = (
    (f"sweep of {STALE_JOBS:,} stale", Grown.sweep, AS_DEAR),
    (f"{STALE_JOBS:,} stale claims taken, no messages", Grown.take_stale, AS_DEAR),
    (f"claims, {CLAIMS} new keys", Grown.claim, AS_DEAR),
    (f"polls, {POLLS} due", Grown.poll, AS_DEAR),
    (f"list, {PAGES} first pages", Grown.first_page, AS_DEAR),
    (f"list, {PAGES} deep pages", Grown.deep_page, AS_DEAR),
    # As many pages are read, but those of old jobs' keys are in no processor's cache.
    (f"prune of {PRUNED}", Grown.prune, THRICE),
    (f"leases, {LEASES} taken and finished", Grown.work, AS_DEAR),
)


def measure(bench: Bench) -> Iterator[Row]:
    """Compare each in rounds of its own; raises when a job or a message is missing."""
    with ExitStack() as opened:
        postgres = opened.enter_context(Postgres(options=OPTIONS))
        valkey = opened.enter_context(Valkey())
        many, few = (opened.enter_context(closing(grown(size, postgres, valkey, bench))) for size in (MANY, FEW))
        names = (f"among {MANY:,}", f"among {FEW:,}")
        for what, work, target in ROWS:
            bench.say(what)
            runs = {name: repeated(work, store) for name, store in zip(names, (many, few), strict=True)}
            for run in runs.values():
                run()  # the first touches what none touched since the rows were made
            [pairs] = interleave(runs, compare=[names], pairs=bench.pairs, say=bench.say).values()
            yield pairs.row(f"{what}, among 3 M jobs / 30 k", target=target, unit="ms")


def repeated(work: Work, store: Grown) -> Callable[[], float]:
    """Return a run of several times the same work, that returns how long it took on average."""
    return lambda: sum(work(store) for _ in range(REPEATS)) / REPEATS


def grown(size: int, postgres: Postgres, valkey: Valkey, bench: Bench) -> Grown:
    """Make a store in a database of its own, all of it in memory."""
    bench.say(f"making {size:,} jobs")
    name = f"grown_{size}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    migrate(postgres.url_of(name))
    fill(postgres.url_of(name), done=size, opened=OPENED)
    with psycopg.connect(postgres.url_of(name), autocommit=True) as connection:
        for statement in WARM:
            connection.execute(statement.encode())
    settings = Settings.load(_env_file=None, redis_url=valkey.url, queue_name=name)
    return Grown(postgres.url_of(name), settings)
