"""Runs are compared only where nobody else was at work."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.bench.meter import Reading
from tests.bench.rounds import MOST_OTHERS, ROUNDS_PER_PAIR, Meter, interleave, repeat
from tests.bench.row import Target

QUIET, BUSY = MOST_OTHERS, MOST_OTHERS + 0.01


class Machine:
    """Runs that tell in which order they came, on a machine as busy as the test says, run by run."""

    def __init__(self, *others: float, otherwise: float = QUIET) -> None:
        self.ran: list[str] = []
        self.told: list[str] = []
        self._others = iter(others)
        self._otherwise = otherwise

    def runs(self, **figures: float) -> dict[str, "Kind"]:
        """Return kinds of runs with the same figure each time."""
        return {name: Kind(self, name, figure) for name, figure in figures.items()}

    @property
    def meter(self) -> Meter:
        """A meter of this machine."""

        @contextmanager
        def metered() -> Iterator[Reading]:
            yield Reading(1.0, next(self._others, self._otherwise))

        return metered


class Kind:
    """One kind of run."""

    def __init__(self, machine: Machine, name: str, figure: float) -> None:
        self._machine, self._name, self._figure = machine, name, figure

    def __call__(self) -> float:
        """Run."""
        self._machine.ran.append(self._name)
        return self._figure


def test_every_other_round_runs_backwards() -> None:
    """Whoever runs first in a round does not do so in the next: what a run leaves behind hits both alike."""
    machine = Machine()
    runs = machine.runs(a=10, b=4, c=2)
    found = interleave(
        runs, compare=[("a", "b"), ("c", "b")], pairs=3, say=machine.told.append, meter=machine.meter
    )  # fmt: skip
    assert "".join(machine.ran) == "abccbaabc"
    assert len(machine.told) == 9
    row = found["a", "b"].row("a / b", target=Target(at_least=2), unit="jobs/s", note="why")
    assert (row.kept, row.discarded, row.ours, row.limit, row.note) == ((2.5, 2.5, 2.5), 0, 10, 4, "why")
    assert found["c", "b"].row("c / b", target=Target(at_least=2), unit="jobs/s").figure == 0.5


def test_a_pair_that_others_disturbed_is_thrown_away_and_run_again() -> None:
    """Whichever of its two runs it was; a pair of two others keeps its own."""
    machine = Machine(QUIET, BUSY, QUIET, QUIET, QUIET, BUSY)
    found = interleave(
        machine.runs(a=1, b=2, c=3), compare=[("a", "b"), ("a", "c")], pairs=1, say=machine.told.append,
        meter=machine.meter,
    )  # fmt: skip
    assert [(len(pairs.kept), pairs.discarded) for pairs in found.values()] == [(1, 2), (2, 1)]
    assert "thrown away" in machine.told[1]
    assert "thrown away" not in machine.told[0]


def test_a_machine_that_stays_busy_ends_it() -> None:
    """With what is kept by then, or with an error where that is nothing."""
    machine = Machine(QUIET, QUIET, otherwise=BUSY)
    runs = machine.runs(a=1, b=2)
    found = interleave(runs, compare=[("a", "b")], pairs=2, say=machine.told.append, meter=machine.meter)
    assert (len(found["a", "b"].kept), found["a", "b"].discarded) == (1, 2 * ROUNDS_PER_PAIR - 1)
    busy = Machine(otherwise=BUSY)
    with pytest.raises(RuntimeError, match="busy all the time"):
        interleave(busy.runs(a=1, b=2), compare=[("a", "b")], pairs=2, say=busy.told.append, meter=busy.meter)
    assert len(busy.ran) == 2 * 2 * ROUNDS_PER_PAIR


def test_plain_figures_are_repeated_until_undisturbed() -> None:
    """One run may have several figures; a disturbed one counts for none of them."""
    machine = Machine(QUIET, BUSY, QUIET)
    [run] = machine.runs(start=2).values()
    found = repeat(
        lambda: {"seconds": run(), "MB": 80 + len(machine.ran)}, times=2, say=machine.told.append, meter=machine.meter
    )
    row = found.row("memory", "MB", target=Target(at_most=90), unit="MB")
    assert (row.kept, row.discarded, row.met) == ((81, 83), 1, True)
    assert found.row("start", "seconds", target=Target(at_most=1), unit="s").met is False
    with pytest.raises(RuntimeError, match="busy all the time"):
        repeat(dict, times=1, say=machine.told.append, meter=Machine(otherwise=BUSY).meter)
