"""What every benchmark is given."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder for what it writes, how many pairs it should keep, and where it tells how far it is."""

    folder: Path
    pairs: int
    say: Callable[[str], None]
