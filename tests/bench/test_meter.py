"""What others did is what all cores did, less what we did."""

from collections.abc import Iterable, Iterator
from typing import Any

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types
import pytest

from tests.bench.meter import Clocks, busy_seconds, metered, our_family, our_seconds


@pytest.mark.parametrize(
    ("begun", "ended", "others"),
    [
        (Clocks(100, 50, 20), Clocks(104, 58, 22), 1.5),
        (Clocks(100, 50, 20), Clocks(104, 54, 24), 0),
        (Clocks(100, 50, 20), Clocks(104, 53.99, 24), 0),
    ],
    ids=["a core and a half", "nobody", "below nothing by a tick"],
)
def test_others_are_what_is_left_of_all_cores(begun: Clocks, ended: Clocks, others: float) -> None:
    clocks = iter([begun, ended])
    with metered(lambda: next(clocks)) as reading:
        assert reading.others == 0
    assert (reading.seconds, reading.others) == (4, others)


class Worked:
    """A process with its times: its own, and those of children it waited for."""

    def __init__(self, *times: float) -> None:
        self._times = times

    def cpu_times(self) -> tuple[float, ...]:
        """Return them, and what is not to be counted: time waited for a disk."""
        return (*self._times, 1000.0)


class Gone(Worked):
    """A process that ended after it was listed."""

    def cpu_times(self) -> tuple[float, ...]:
        raise psutil.NoSuchProcess(1)


def test_a_child_that_ended_is_in_its_parents_time() -> None:
    """One that ends while we read is read again with its parent: else its time would be in neither."""
    families: Iterator[Iterable[Any]] = iter(
        [[Worked(1, 1, 0, 0), Gone()], [Worked(1, 1, 3, 1), Worked(0.5, 0.25, 0, 0)]]
    )
    assert our_seconds(lambda: next(families)) == 6.75
    with pytest.raises(RuntimeError, match="faster than they can be counted"):
        our_seconds(lambda: [Gone()])


def test_the_clocks_of_this_machine_can_be_read() -> None:
    """We come first, so that no child of ours is read before its parent."""
    assert our_family()[0].pid == psutil.Process().pid
    assert our_seconds() > 0
    assert busy_seconds() > 0
