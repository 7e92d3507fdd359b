"""One row of the table: what was measured, and whether it is where it should be."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Where a figure should lie; exactly one of the two bounds is given."""

    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a target is one bound")

    @property
    def bound(self) -> float:
        """The bound that is given."""
        return next(bound for bound in (self.at_least, self.at_most) if bound is not None)

    def met_by(self, figure: float) -> bool:
        """Whether the figure lies there."""
        return figure >= self.bound if self.at_most is None else figure <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_most is None else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: the median of what was kept, with its spread.

    `ours` and `limit` are the medians a ratio was made of, in `unit`; for a plain figure they are None and the
    figure itself is in `unit`.
    """

    name: str
    target: Target
    kept: tuple[float, ...]
    discarded: int
    """Runs, or pairs of them, thrown away because other processes were at work."""
    unit: str
    ours: float | None = None
    limit: float | None = None
    note: str = ""
    """Why the target is missed, where that is known; shown only then."""

    @property
    def figure(self) -> float:
        """The median."""
        return statistics.median(self.kept)

    @property
    def met(self) -> bool:
        """Whether the median is where it should be."""
        return self.target.met_by(self.figure)
