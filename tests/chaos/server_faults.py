"""Faults of PostgreSQL, Redis, the network to them, and the storage's file system."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg
from redis import Redis

from tests.chaos.fault import OUTSIDE, WORKER, Fault, SkippedError, Strike
from tests.chaos.proxy import Link
from tests.chaos.world import World

SLOW_SECONDS = 8.0
REFILL_SECONDS = 0.2
SERVERS = ("postgres", "valkey")


@contextmanager
def stopped(world: World, server: str) -> Iterator[None]:
    """Shut down in good order, then started again."""
    name = getattr(world, server)
    name.stop()
    try:
        yield
    finally:
        name.start()


@contextmanager
def crashed(world: World, server: str) -> Iterator[None]:
    """SIGKILL, then started again on what it had on disk."""
    name = getattr(world, server)
    name.kill()
    try:
        yield
    finally:
        name.start()


@contextmanager
def frozen(world: World, server: str) -> Iterator[None]:
    """SIGSTOP: connections are accepted by the kernel, and nothing is answered."""
    name = getattr(world, server)
    name.pause()
    try:
        yield
    finally:
        name.resume()


@contextmanager
def restarted_empty(world: World) -> Iterator[None]:
    """Redis comes back without its data."""
    valkey = world.valkey
    valkey.kill()
    folder = valkey.process.log_path.parent
    shutil.rmtree(folder / "appendonlydir", ignore_errors=True)
    try:
        yield
    finally:
        valkey.start()


@contextmanager
def flushed(world: World) -> Iterator[None]:
    """FLUSHALL."""
    with Redis.from_url(world.valkey.url) as redis:
        redis.flushall()
    yield


@contextmanager
def read_only(world: World) -> Iterator[None]:
    """Redis refuses every write, as a replica does after a failover."""
    with Redis.from_url(world.valkey.url) as redis:
        redis.replicaof("127.0.0.1", "1")
        try:
            yield
        finally:
            redis.replicaof("NO", "ONE")


@contextmanager
def out_of_memory(world: World) -> Iterator[None]:
    """Redis refuses whatever needs memory."""
    with Redis.from_url(world.valkey.url) as redis:
        redis.config_set("maxmemory", 1)
        try:
            yield
        finally:
            redis.config_set("maxmemory", 0)


def links_to(world: World, server: str, client: str | None) -> list[Link]:
    """Return the links of one of our processes, or of all, to a server."""
    return [links[server] for name, links in world.links.items() if client in {None, name}]


@contextmanager
def cut(world: World, server: str, client: str | None = None) -> Iterator[None]:
    """No connection between a server and one process, or all of them."""
    links = links_to(world, server, client)
    for link in links:
        link.cut()
    try:
        yield
    finally:
        for link in links:
            link.heal()


@contextmanager
def slow(world: World, server: str) -> Iterator[None]:
    """Every answer of a server takes eight seconds."""
    links = links_to(world, server, None)
    for link in links:
        link.slow(SLOW_SECONDS)
    try:
        yield
    finally:
        for link in links:
            link.heal()


@contextmanager
def exhausted(world: World) -> Iterator[None]:
    """Somebody else holds every connection that PostgreSQL allows, and ours were cut."""
    over = threading.Event()
    held: list[psycopg.Connection] = []

    def keep_taking() -> None:
        while not over.wait(REFILL_SECONDS):
            take_all(world.postgres.url, held)

    take_all(world.postgres.url, held)
    taking = threading.Thread(target=keep_taking)
    taking.start()
    try:
        held[0].execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND NOT pid = ANY(%s)",
            [[connection.info.backend_pid for connection in held]],
        )
        yield
    finally:
        over.set()
        taking.join()
        for connection in held:
            connection.close()


def take_all(database_url: str, held: list[psycopg.Connection]) -> None:
    """Connect until PostgreSQL allows no more."""
    with suppress(psycopg.Error):
        while True:
            held.append(psycopg.connect(database_url, autocommit=True))


@contextmanager
def rows_held(world: World) -> Iterator[None]:
    """A forgotten transaction holds rows: those at work, and one of a job whose delivery has yet to come."""
    with psycopg.connect(world.postgres.url) as connection, connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '2s'")
        cursor.execute("SELECT job_id FROM sume_jobs WHERE state IN ('claimed', 'running') LIMIT 20 FOR UPDATE")
        known = {row[0] for row in cursor.execute("SELECT job_id FROM sume_jobs")}
        coming = next((job for job in world.jobs if job.delivered and job.job_id not in known), None)
        if coming is not None:
            cursor.execute(
                "INSERT INTO sume_jobs (job_id, event, status, payload) VALUES (%s, 'job.completed', 'OK', '{}') "
                "ON CONFLICT DO NOTHING",
                [coming.job_id],
            )
        try:
            yield
        finally:
            connection.rollback()


@contextmanager
def table_locked(world: World) -> Iterator[None]:
    """Somebody's migration locks the table of jobs."""
    with psycopg.connect(world.postgres.url) as connection:
        connection.execute("SET lock_timeout = '5s'")
        connection.execute("LOCK TABLE sume_jobs IN ACCESS EXCLUSIVE MODE")
        try:
            yield
        finally:
            connection.rollback()


@contextmanager
def full(world: World) -> Iterator[None]:
    """Not one byte is free."""
    if not world.disk.special:
        raise SkippedError("needs root that may mount a file system")
    world.disk.fill()
    try:
        yield
    finally:
        world.disk.empty()


@contextmanager
def unwritable(world: World) -> Iterator[None]:
    """The file system is read-only."""
    if not world.disk.special:
        raise SkippedError("needs root that may mount a file system")
    if not world.disk.read_only():
        raise SkippedError("a file stayed open for writing")
    try:
        yield
    finally:
        world.disk.writable()


def fault(where: str, what: str, seconds: tuple[float, float], strike: Strike, *, row: str | None = None) -> Fault:
    """Return a fault of this lane; `row` is what it is called together with others of its kind."""
    return Fault(what, where, "servers", seconds, strike, row or f"{where}: {what}")


REDIS = "redis: emptied, restarted, frozen, cut off, slow, READONLY, out of memory"
AWAY = "postgres: restarted, killed, frozen, cut off, 8 s slow"
BUSY = "postgres: connections exhausted, rows or table locked"

SERVER_FAULTS = (
    fault("redis", "FLUSHALL", (0.5, 1), flushed, row=REDIS),
    fault("redis", "restart", (1, 3), partial(stopped, server="valkey"), row=REDIS),
    fault("redis", "restart without its data", (1, 3), restarted_empty, row=REDIS),
    fault("redis", "frozen", (2, 5), partial(frozen, server="valkey"), row=REDIS),
    fault("redis", "READONLY", (2, 5), read_only, row=REDIS),
    fault("redis", "out of memory", (2, 5), out_of_memory, row=REDIS),
    fault("redis", "cut from all", (2, 4), partial(cut, server="valkey"), row=REDIS),
    fault("redis", "cut from one worker", (2, 5), partial(cut, server="valkey", client="worker-2"), row=WORKER),
    fault("redis", "8 s slow", (9, 10), partial(slow, server="valkey"), row=REDIS),
    fault("postgres", "restart", (1, 3), partial(stopped, server="postgres"), row=AWAY),
    fault("postgres", "SIGKILL", (1, 3), partial(crashed, server="postgres"), row=AWAY),
    fault("postgres", "frozen", (2, 6), partial(frozen, server="postgres"), row=AWAY),
    fault("postgres", "cut from all", (2, 4), partial(cut, server="postgres"), row=AWAY),
    fault("postgres", "cut from one worker", (3, 7), partial(cut, server="postgres", client="worker-2"), row=WORKER),
    fault("postgres", "8 s slow", (9, 10), partial(slow, server="postgres"), row=AWAY),
    fault("postgres", "connections exhausted", (3, 5), exhausted, row=BUSY),
    fault("postgres", "idle transaction holds rows", (4, 7), rows_held, row=BUSY),
    fault("postgres", "table locked", (2, 4), table_locked, row=BUSY),
    fault("storage", "disk full", (3, 5), full, row=OUTSIDE),
    fault("storage", "read-only", (3, 5), unwritable, row=OUTSIDE),
)
