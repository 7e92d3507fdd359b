"""Real workers on real servers, killed, stopped and starved in mid-download."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import rq
from redis import Redis

from shared.claims.records import Message
from shared.config import child_environment
from shared.queue import Queue
from shared.sandbox.process import Process, python_module
from shared.sandbox.sume import File
from tests.conftest import MakeSettings
from tests.worker.bench import Bench
from tests.worker.conftest import PROJECT, children

LEASE_SECONDS = 2
BODY = b"\x89PNG\r\n\x1a\n" + b"x" * 1_000_000
HANDLER = """
import pathlib, time

def stubborn(job):
    pathlib.Path("handling").touch()
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""

StartWorker = Callable[..., Process]


@pytest.fixture
def queue(make_settings: MakeSettings, redis_url: str) -> Iterator[Queue]:
    queue = Queue(make_settings(redis_url=redis_url))
    yield queue
    queue.close()


@pytest.fixture
def start(tmp_path: Path, database_url: str, redis_url: str, bench: Bench) -> Iterator[StartWorker]:
    """Return a starter of worker processes beside the bench, by default `python -m worker`."""
    (tmp_path / "shop.py").write_text(HANDLER, encoding="utf-8")
    with ExitStack() as stack:

        def start(*command: str, **settings: str) -> Process:
            env = child_environment(
                DATABASE_URL=database_url,
                REDIS_URL=redis_url,
                STORAGE_URL=f"file://{bench.pipeline.tools.locate('.')}",
                SUME_API_KEY=bench.sume.api_key,
                SUME_API_BASE_URL=bench.sume.api_url,
                ARTIFACT_HOSTS="127.0.0.1",
                ARTIFACT_ALLOW_INSECURE="true",
                STORAGE_MIN_FREE_BYTES="0",
                LEASE_SECONDS=str(LEASE_SECONDS),
                PYTHONPATH=str(PROJECT),
            )
            name = f"worker-{len(list(tmp_path.glob('*.log')))}"
            line = list(command) or python_module("worker")
            return stack.enter_context(Process(line, name=name, folder=tmp_path, env=env | settings))

        yield start


@pytest.fixture
def stalling(bench: Bench, queue: Queue) -> File:
    """A claimed and queued job whose download stops half-way until it is released."""
    file = bench.sume.host("big.png", BODY, stall_after=500_000)
    bench.claim("job_demo", artifacts=[file])
    send(queue)
    return file


def send(queue: Queue, *job_ids: str) -> None:
    queue.enqueue_many([Message(job_id, "job.completed", "OK", 1) for job_id in job_ids or ("job_demo",)])


def sweep(bench: Bench, queue: Queue) -> bool:
    """Do as the scheduler's sweep does with a job whose lease ran out; return whether there was one."""
    lost = bench.subject.store.lose_leases(limit=10)
    if lost:
        send(queue, *lost)
    return bool(lost)


def published(bench: Bench) -> dict[str, int]:
    root = Path(bench.pipeline.tools.locate("."))
    visible = (path for path in root.glob("job_*/*") if path.is_file())
    return {path.name: path.stat().st_size for path in visible}


def test_a_worker_killed_in_mid_download_costs_one_lease(
    bench: Bench, queue: Queue, stalling: File, start: StartWorker
) -> None:
    """Another finishes within two leases; nothing partial is visible, and the file is published once (I6, I8)."""
    first = start()
    assert stalling.stalled.wait(30)
    first.kill()
    before = time.monotonic()
    assert published(bench) == {}
    stalling.release()
    second = start()
    second.wait_for(lambda: sweep(bench, queue), what="a lost lease", within=timedelta(seconds=2 * LEASE_SECONDS))
    second.wait_for(lambda: bench.record().state == "done", what="done")
    assert time.monotonic() - before < 3 * LEASE_SECONDS + 2  # the rest is the start of a process
    assert published(bench) == {"00-big.png": len(BODY), "manifest.json": published(bench)["manifest.json"]}
    assert bench.outcome() == ("done", None, 2)
    assert second.log().count("artifact.published") == 1


def test_a_worker_asked_to_stop_in_mid_download_hands_its_job_back(
    bench: Bench, queue: Queue, stalling: File, start: StartWorker
) -> None:
    worker = start()
    assert stalling.stalled.wait(30)
    before = time.monotonic()
    assert worker.terminate() == 0
    assert time.monotonic() - before < 3
    assert bench.outcome() == ("claimed", "worker_stopped", 0)
    assert queue.waiting_ids() == {"job_demo"}
    stalling.release()
    assert start(*python_module("worker", "--burst")).wait() == 0
    assert bench.outcome() == ("done", None, 1)


def test_a_handler_that_ignores_everything_is_killed_with_its_worker(
    bench: Bench, queue: Queue, start: StartWorker, tmp_path: Path
) -> None:
    """Within ten seconds of SIGTERM; its lease recovers the job."""
    bench.claim("job_demo", artifacts=[BODY])
    send(queue)
    worker = start(HANDLER="shop:stubborn")
    worker.wait_for((tmp_path / "handling").exists, what="the handler")
    (child,) = children(worker)
    before = time.monotonic()
    assert worker.terminate() == 0
    assert 8 < time.monotonic() - before < 10
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    worker.start()
    worker.wait_for(lambda: sweep(bench, queue), what="a lost lease")


def test_a_frozen_worker_that_wakes_after_its_lease_changes_nothing(
    bench: Bench, stalling: File, start: StartWorker
) -> None:
    """Another holds the job by then, and keeps it (I5)."""
    worker = start()
    assert stalling.stalled.wait(30)
    worker.pause()
    bench.due()
    assert bench.subject.store.lose_leases(limit=10) == ["job_demo"]
    lease = bench.subject.take("job_demo")
    stalling.release()
    worker.resume()
    worker.wait_for_log("lease.lost")
    assert bench.outcome() == ("running", "worker_lost", 2)
    assert bench.subject.store.live_tokens([lease.token]) == {lease.token}


def test_redis_flushed_or_frozen_in_mid_job_changes_no_outcome(
    bench: Bench, stalling: File, start: StartWorker, redis_url: str
) -> None:
    worker = start()
    assert stalling.stalled.wait(30)
    with Redis.from_url(redis_url) as redis:
        redis.flushall()
    stalling.release()
    worker.wait_for(lambda: bench.record().state == "done", what="done")
    assert worker.terminate() == 0


def test_postgres_away_delays_a_worker_and_loses_nothing(
    bench: Bench, queue: Queue, stalling: File, start: StartWorker, database_url: str
) -> None:
    """Every connection cut in mid-job and again between two; the outcome is written under the same lease."""
    worker = start()
    assert stalling.stalled.wait(30)
    cut_connections(bench, database_url)
    stalling.release()
    worker.wait_for(lambda: bench.record().state == "done", what="done")
    assert bench.outcome() == ("done", None, 1)
    cut_connections(bench, database_url)
    bench.claim("job_next", artifacts=[BODY])
    send(queue, "job_next")
    worker.wait_for(lambda: bench.record("job_next").state == "done", what="done")


def cut_connections(bench: Bench, database_url: str) -> None:
    """Cut every connection but those of the test."""
    bench.subject.store.close()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )


def test_plain_rq_worker_does_the_same_work(bench: Bench, queue: Queue, start: StartWorker, redis_url: str) -> None:
    """It forks for each message; a failure is shown as code and line, with no secret and no frame of ours."""
    bench.claim("job_good", artifacts=[BODY])
    bench.claim("job_bad", artifacts=["https://127.0.0.1:1/x.png?X-Signature=very-secret"])
    send(queue, "job_good", "job_bad", "job_unknown")
    line = python_module("rq.cli", "worker", "sume", "-u", redis_url, "-S", "rq.serializers.JSONSerializer", "--burst")
    worker = start(*line)
    assert worker.wait() == 0
    assert bench.outcome("job_good") == ("done", None, 1)
    assert bench.outcome("job_bad") == ("claimed", "download_failed", 1)
    with Redis.from_url(redis_url) as redis:
        (failed,) = rq.Queue("sume", connection=redis).failed_job_registry.get_job_ids()
        stored = b"".join(redis.dump(key) or b"" for key in redis.scan_iter(f"*{failed}*"))
    assert b"very-secret" not in stored
    assert "very-secret" not in worker.log()
