"""Postgres or Redis refused, frozen and back: answers stay in time, and the receiver recovers by itself."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import redis

from shared.claims.schema import migrate
from shared.queue import Queue
from shared.sandbox.postgres import Postgres
from shared.sandbox.system import settings_of
from shared.sandbox.valkey import Valkey
from tests.api.harness import UNREACHABLE_REDIS
from tests.api.running import RunningApi, post
from tests.conftest import started

RECOVERY = timedelta(seconds=10)
TIMEOUT = 2.0


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that the test may break."""
    server = Postgres(options={"fsync": "off"})
    try:
        started(server)
        migrate(server.url)
        yield server
    finally:
        server.close()


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    """A server that the test may break."""
    server = Valkey()
    try:
        started(server)
        yield server
    finally:
        server.close()


def running(folder: Path, postgres: Postgres, redis_url: str) -> RunningApi:
    """Return a receiver with little patience."""
    settings = {"WEBHOOK_TIMEOUT_SECONDS": str(TIMEOUT), "DATABASE_URL": postgres.url, "REDIS_URL": redis_url}
    return RunningApi(folder, **settings)


def recovers(api: RunningApi) -> bool:
    """Whether deliveries are accepted again within the promised time."""
    deadline = time.monotonic() + RECOVERY.total_seconds()
    while time.monotonic() < deadline:
        if api.deliver("job-after")[0] == 204:
            return True
    return False


def says_that_it_is_not_ready(api: RunningApi) -> bool:
    """Whether /readyz says so soon: what it was told last holds for a second."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        if '"ready":false' in api.get("/readyz"):
            return True
    return False


def stored(postgres: Postgres) -> set[str]:
    """Return the job_ids in the database."""
    with psycopg.connect(postgres.url) as connection:
        return {row[0] for row in connection.execute("SELECT job_id FROM sume_jobs")}


@pytest.mark.parametrize("outage", ["stop", "kill", "pause"])
def test_postgres_away_is_503_and_back_is_204(
    outage: str, tmp_path: Path, own_postgres: Postgres, redis_url: str
) -> None:
    """While Postgres is away nothing is 2xx and every answer is in time; when it is back, claims are stored soon."""
    with running(tmp_path, own_postgres, redis_url) as api:
        assert api.deliver("job-before")[0] == 204
        getattr(own_postgres, outage)()
        client = api.client()
        for number in range(3):
            began = time.monotonic()
            status, headers = post(client, f"job-during-{number}")
            assert (status, int(headers["retry-after"]) > 0) == (503, True)
            assert time.monotonic() - began < TIMEOUT + 1
        client.close()
        assert says_that_it_is_not_ready(api)
        own_postgres.start()
        assert recovers(api)
    assert {"job-before", "job-after"} <= stored(own_postgres)


@pytest.mark.parametrize("outage", ["stop", "pause", "read-only"])
def test_redis_away_changes_no_answer(outage: str, tmp_path: Path, own_postgres: Postgres, own_valkey: Valkey) -> None:
    """Redis refused, frozen or read-only: every delivery is 204 and fast, and its message goes out afterwards."""
    with running(tmp_path, own_postgres, own_valkey.url) as api:
        assert api.deliver("job-before")[0] == 204
        if outage == "read-only":
            with redis.Redis.from_url(own_valkey.url) as client:
                client.replicaof("127.0.0.1", 1)
        else:
            getattr(own_valkey, outage)()
        sent = {f"job-{number}" for number in range(30)}
        answers = [api.deliver(job_id) for job_id in sorted(sent)]
        assert {status for status, _ in answers} == {204}
        assert max(seconds for _, seconds in answers) < TIMEOUT
        api.process.wait_for_log("enqueue.paused")
        if outage == "read-only":
            with redis.Redis.from_url(own_valkey.url) as client:
                client.replicaof("NO", "ONE")
        own_valkey.start()
        api.process.wait_for_log("enqueue.resumed")
        assert api.process.log().count("enqueue.paused") == 1
        with closing(Queue(settings_of({"REDIS_URL": own_valkey.url}))) as queue:
            api.process.wait_for(lambda: sent <= queue.waiting_ids(), what="all messages sent")
    assert sent <= stored(own_postgres)


def test_it_starts_without_either_and_recovers(tmp_path: Path, own_postgres: Postgres) -> None:
    """A receiver that is started before its database answers 503 until it is there."""
    own_postgres.stop()
    with running(tmp_path, own_postgres, UNREACHABLE_REDIS) as api:
        assert api.deliver("job-early")[0] == 503
        own_postgres.start()
        assert recovers(api)
