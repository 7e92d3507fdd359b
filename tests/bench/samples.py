"""Rows and reports for tests."""

from datetime import date

from tests.bench.machine import Machine
from tests.bench.report import Entry, Report
from tests.bench.row import Row, Target

MACHINE = Machine("Example CPU 1", 2, 8, "Linux 6.1", "3.11.7", "18.6", "9.1.2")
DAY = date(2026, 1, 2)
RATIO = Row("ours <a> & b | c", Target(at_least=0.9), (0.95, 1.0, 1.1), 1, "jobs/s", 1200, 1150)
MISSED = Row("slow / fast", Target(at_least=0.9), (0.5,), 0, "jobs/s", 50, 100, "two cores are too few")
FAR = Row("ours / naive", Target(at_least=15), (17.0, 19.0), 0, "jobs/s", 1200, 66)
PLAIN = Row("idle memory", Target(at_most=90), (80, 84.25), 0, "MB")


def report(*rows: Row, benchmark: str = "receiver", day: date = DAY, machine: Machine = MACHINE) -> Report:
    """Return a report of one benchmark."""
    return Report(machine, "abc123", tuple(Entry(benchmark, row, day) for row in rows))
