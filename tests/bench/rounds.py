"""Runs that are compared with each other, in turn, until enough undisturbed ones are kept."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.bench.meter import Reading, metered
from tests.bench.row import Row, Target

MOST_OTHERS = 0.4
"""Cores; a run that shared the machine with more is of no use."""
ROUNDS_PER_PAIR = 3
"""Give up on a quiet machine after so many times the rounds wanted."""

Run: TypeAlias = Callable[[], float]
"""Runs once and returns its figure."""
Meter: TypeAlias = Callable[[], AbstractContextManager[Reading]]
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run's figure, and how much of the machine others used meanwhile."""

    figure: float
    others: float

    @property
    def quiet(self) -> bool:
        """Whether it counts."""
        return self.others <= MOST_OTHERS


@dataclass(slots=True)
class Pairs:
    """The runs of two kinds, round by round."""

    kept: list[tuple[float, float]] = field(default_factory=list)
    discarded: int = 0

    def add(self, ours: Sample, limit: Sample) -> None:
        """Keep a pair, or throw it away."""
        if ours.quiet and limit.quiet:
            self.kept.append((ours.figure, limit.figure))
        else:
            self.discarded += 1

    def row(self, name: str, *, target: Target, unit: str, note: str = "") -> Row:
        """Return the ratio as a row."""
        return Row(
            name,
            target,
            tuple(ours / limit for ours, limit in self.kept),
            self.discarded,
            unit,
            statistics.median(ours for ours, _ in self.kept),
            statistics.median(limit for _, limit in self.kept),
            note,
        )


@dataclass(slots=True)
class Repeats:
    """The figures of one kind of run, each of several figures by its name."""

    kept: list[Mapping[str, float]] = field(default_factory=list)
    discarded: int = 0

    def row(self, name: str, figure: str, *, target: Target, unit: str, note: str = "") -> Row:
        """Return one of the figures as a row."""
        return Row(name, target, tuple(run[figure] for run in self.kept), self.discarded, unit, note=note)


def interleave(
    runs: Mapping[str, Run],
    *,
    compare: Sequence[tuple[str, str]],
    pairs: int,
    say: Say,
    meter: Meter = metered,
) -> dict[tuple[str, str], Pairs]:
    """Run all kinds in turn, every other round backwards, until each wanted pair was kept `pairs` times.

    A machine that stays busy ends it too, after three times as many rounds; then fewer pairs are kept, but at least
    one, or RuntimeError is raised.
    """
    found = {names: Pairs() for names in compare}
    for number in rounds(pairs):
        order = list(runs) if number % 2 else list(runs)[::-1]
        samples = {}
        for name in order:
            with meter() as reading:
                figure = runs[name]()
            samples[name] = Sample(figure, reading.others)
            say(f"round {number}: {name} {figure:,.1f} {share(samples[name])}")
        for (ours, limit), kept in found.items():
            kept.add(samples[ours], samples[limit])
        if all(len(kept.kept) >= pairs for kept in found.values()):
            break
    if not all(kept.kept for kept in found.values()):
        raise RuntimeError("other processes kept this machine busy all the time; nothing could be compared")
    return found


def repeat(run: Callable[[], Mapping[str, float]], *, times: int, say: Say, meter: Meter = metered) -> Repeats:
    """Run one kind alone until it was undisturbed `times` times; gives up as `interleave` does."""
    found = Repeats()
    for number in rounds(times):
        with meter() as reading:
            figures = run()
        sample = Sample(0, reading.others)
        shown = ", ".join(f"{name} {figure:,.2f}" for name, figure in figures.items())
        say(f"run {number}: {shown} {share(sample)}")
        if sample.quiet:
            found.kept.append(figures)
        else:
            found.discarded += 1
        if len(found.kept) >= times:
            break
    if not found.kept:
        raise RuntimeError("other processes kept this machine busy all the time; nothing could be measured")
    return found


def rounds(wanted: int) -> Iterator[int]:
    """Number the rounds that may be tried."""
    yield from range(1, wanted * ROUNDS_PER_PAIR + 1)


def share(sample: Sample) -> str:
    """Say what others did meanwhile."""
    return f"(others {sample.others:.2f} cores{'' if sample.quiet else ', thrown away'})"
