"""The scheduler sends one waiting job to try its host, and the rest once it is back."""

from datetime import timedelta

from structlog.testing import capture_logs

from scheduler.circuits import CircuitKeeper
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.hosts import HOST, SOON, open_circuit, wait_for_host
from tests.conformance.subject import STALE
from tests.scheduler.fakes import NEVER

AGAIN = timedelta(minutes=15)


def test_waiting_jobs_are_called_and_freed_in_batches(subject: PostgresSubject) -> None:
    """However many wait; a round that finds nothing to do is silent."""
    keeper = CircuitKeeper(subject.store, within=STALE, again=AGAIN, batch=2)
    open_circuit(subject)
    for number in range(5):
        wait_for_host(subject, f"job_{number}")
    with capture_logs() as logs:
        keeper.tend(NEVER)
        subject.let_pass(SOON)
        keeper.tend(NEVER)
        subject.store.host_worked(HOST)
        keeper.tend(NEVER)
        keeper.tend(NEVER)
    assert [(line["called"], line["freed"]) for line in logs] == [(1, 0), (0, 5)]
    subject.let_pass(timedelta(minutes=1))
    assert len(subject.store.overdue_claims(limit=9, stale=STALE)) == 5
