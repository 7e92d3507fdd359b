"""The clean-up removes what killed workers left, in Redis and in the storage."""

import pytest
import rq
from redis import Redis

from scheduler.cleaner import Cleaner
from shared.config import Settings
from shared.queue import Queue
from shared.storage import open_storage
from shared.storage.recognition import StorageGuard
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import LEASE
from tests.scheduler.fakes import NEVER
from tests.storage.forgetful import ForgetfulStorage


@pytest.fixture
def cleaner(subject: PostgresSubject, queue: Queue, settings: Settings) -> Cleaner:
    storage = open_storage(settings)
    return Cleaner(subject.store, queue, storage, StorageGuard(storage, subject.store))


def test_partial_files_go_with_their_lease_and_not_before(
    cleaner: Cleaner, subject: PostgresSubject, settings: Settings
) -> None:
    """A killed worker's go once its lease is lost; a living worker's stay."""

    def left() -> set[str]:
        return {path.name for path in (settings.storage_path / ".partial").glob("*/*/*")}

    for job_id in ("job_killed", "job_alive"):
        subject.deliver(job_id)
    with ForgetfulStorage(settings.storage_path) as storage:
        storage.start("job_killed", token=subject.take("job_killed").token, name="killed")
        cleaner.sweep_partials(NEVER)
        assert left() == {"killed"}
        subject.let_pass(LEASE)
        storage.start("job_alive", token=subject.take("job_alive").token, name="alive")
        subject.store.lose_leases(limit=9)
        cleaner.sweep_partials(NEVER)
        assert left() == {"alive"}


def test_a_killed_worker_is_forgotten_by_the_queue(cleaner: Cleaner, queue: Queue, settings: Settings) -> None:
    """RQ believes in it only until its heartbeat is missed."""
    assert settings.redis_url is not None
    with Redis.from_url(settings.redis_url.get_secret_value()) as client:
        client.sadd(f"rq:workers:{settings.queue_name}", "rq:worker:gone")
        assert rq.Worker.count(queue=rq.Queue(settings.queue_name, connection=client)) == 1
        cleaner.clean_registries(NEVER)
        assert queue.workers() == 0
