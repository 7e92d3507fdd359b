"""No statement of the store reads a table that grows: at millions of jobs each costs what it costs at thousands."""

from contextlib import closing

import pytest

from shared.claims.postgres.store import PostgresStore
from tests.claims.crowd import fill
from tests.claims.everything import ask_everything
from tests.claims.plans import record_plans
from tests.conformance.subject import STALE

READ_THE_TABLE = {
    "reporting.JOBS": "`stats` counts every job, also by `deliveries`, which no index may hold: see the test of HOT",
    "list redelivered": "in the order of all, until the page is full; no index, as above (0.4 s at worst for 3 M jobs)",
    "list ERROR": "in the order of all, until the page is full: one job in dozens, and those to be seen come first",
    "list OK": "in the order of all: nearly every job is one",
    "list done": "in the order of all: nearly every job is one",
}
"""What may, and why."""


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_every_statement_uses_an_index(database_url: str, mode: str) -> None:
    """Whether PostgreSQL plans for the very values or once for all: a prepared statement may get either."""
    fill(database_url, done=30_000, opened=60)
    with closing(PostgresStore(database_url, stale=STALE)) as store:
        recorder = record_plans(store, database_url, mode=mode)

        def name(what: str) -> None:
            recorder.running = what

        ask_everything(store, name=name)
    assert recorder.never_run == set()
    faulty = [f"{name} {fault}" for name, fault in sorted(recorder.faults) if name not in READ_THE_TABLE]
    assert not faulty, "\n".join(faulty)
    assert {name for name, _ in recorder.faults} == set(READ_THE_TABLE)
