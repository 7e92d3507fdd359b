"""The receiver tells people when no scheduler lives; the scheduler tells the rest."""

from datetime import timedelta

import pytest

from api.watch import SchedulerWatch
from shared.alerts import AppriseAlerts
from tests.claims.postgres_subject import PostgresSubject

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("ever", [True, False])
def test_a_silent_scheduler_is_told_of_once_in_five_minutes(database_url: str, *, ever: bool) -> None:
    """After two minutes, by one of any number of receivers, and not while one starts."""
    subject, told = PostgresSubject(database_url), list[str]()
    now = [0.0]

    def send(title: str, body: str) -> bool:
        told.append(f"{title}\n{body}")
        return True

    watches = [
        SchedulerWatch(subject.store, AppriseAlerts(send, subject.store), monotonic=lambda: now[0]) for _ in range(3)
    ]

    def look() -> int:
        for watch in watches:
            watch.look()
        return len(told)

    assert look() == 0, "it may be starting, as this receiver is"
    now[0] = 120
    if ever:
        subject.store.beat("scheduler", "s")
        assert look() == 0
        subject.let_pass(2 * MINUTE)
    assert look() == 1
    assert "sume-jobs scheduler" in told[0]
    assert ("ever" in told[0]) is not ever
    subject.let_pass(4 * MINUTE)
    assert look() == 1
    subject.let_pass(MINUTE)
    assert look() == 2
    subject.store.beat("scheduler", "s")
    subject.let_pass(MINUTE)
    assert look() == 2
    subject.store.close()
