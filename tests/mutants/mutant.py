"""One edit that breaks a promise."""

from dataclasses import dataclass
from pathlib import Path

CLAIMING = "tests/claims/test_postgres_conformance.py::TestClaiming::"
LEASING = "tests/claims/test_postgres_conformance.py::TestLeasing::"
SWEEPING = "tests/claims/test_postgres_conformance.py::TestSweeping::"


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is broken, by which edit, and which tests are to fail for it; one of them is enough."""

    promise: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> str:
        """Make the edit below `root` and return the text that was there; ValueError unless it fits exactly once."""
        path = root / self.file
        before = path.read_text(encoding="utf-8")
        if before.count(self.old) != 1:
            raise ValueError(f"{self.file} holds {before.count(self.old)} times what `{self.breaks}` replaces")
        path.write_text(before.replace(self.old, self.new), encoding="utf-8")
        return before
