"""The prune deletes details past retention, all of them, and only those."""

import threading
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from scheduler.pruner import Pruner
from shared.claims.records import JobRecord
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.leasing import bring_to
from tests.scheduler.fakes import NEVER

MONTH = timedelta(days=30)


@pytest.fixture
def subject(subject: PostgresSubject) -> PostgresSubject:
    """Five done jobs past retention, one done today, one dead long ago."""
    for n in range(5):
        bring_to(subject, f"job_old{n}", "done")
    bring_to(subject, "job_dead", "dead")
    subject.let_pass(MONTH)
    bring_to(subject, "job_new", "done")
    return subject


def pruned(subject: PostgresSubject) -> list[str]:
    def record(job_id: str) -> JobRecord:
        found = subject.store.get_job(job_id)
        assert found is not None
        return found

    names = [f"job_old{n}" for n in range(5)] + ["job_new", "job_dead"]
    return [name for name in names if record(name).pruned_at is not None]


def test_all_that_is_past_retention_goes_in_batches(subject: PostgresSubject) -> None:
    """However many; the rest stays, and a prune of nothing is silent."""
    pruner = Pruner(subject.store, older_than=MONTH, batch=2)
    with capture_logs() as lines:
        pruner.prune(NEVER)
        pruner.prune(NEVER)
    assert pruned(subject) == [f"job_old{n}" for n in range(5)]
    assert [(line["event"], line["jobs"]) for line in lines] == [("prune.done", 5)]


def test_a_retention_of_zero_keeps_everything(subject: PostgresSubject) -> None:
    """RETENTION_DAYS=0 is for ever, not for no time at all."""
    Pruner(subject.store, older_than=timedelta(0)).prune(NEVER)
    assert pruned(subject) == []


def test_a_stopped_scheduler_prunes_no_more(subject: PostgresSubject) -> None:
    stop = threading.Event()
    stop.set()
    Pruner(subject.store, older_than=MONTH).prune(stop)
    assert pruned(subject) == []
