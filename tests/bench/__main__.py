"""The command behind `make bench`."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from shared import clock
from tests.bench.bench import Bench
from tests.bench.machine import commit_of, this_machine
from tests.bench.picture import draw
from tests.bench.publish import DOCUMENT, PICTURE, RESULTS, publish
from tests.bench.report import Entry, Report, print_report, read_report
from tests.bench.row import Row

Measure: TypeAlias = Callable[[Bench], Iterable[Row]]

BENCHMARKS = (
    "receiver",
    "latency",
    "start",
    "jobs",
    "downloads",
    "sweep",
)
"""In the order of the table. Each is a module here with `measure(bench)`, imported when its turn comes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and return the exit status: 0 whatever the figures are, for they depend on the machine.

    1 when a benchmark could not run or found wrong work; what the others measured is told all the same.
    """
    options = parse(arguments)
    entries, problems = measure_all(options.names or BENCHMARKS, pairs=options.pairs)
    report = Report(this_machine(), commit_of(Path.cwd()), tuple(entries))
    if entries:
        print_report(report, Console())
        try:
            keep(report, Path.cwd(), published=options.publish)
        except (OSError, ValueError) as error:
            problems.append(f"not written: {error}")
    for problem in problems:
        say(problem)
    return 1 if problems else 0


def measure_all(names: Iterable[str], *, pairs: int) -> tuple[list[Entry], list[str]]:
    """Run benchmarks one after the other; return their rows, and a line for each that did not work."""
    entries, problems = [], []
    for name in names:
        say(f"{name}:")
        try:
            with tempfile.TemporaryDirectory(prefix="sume-jobs-bench-") as folder:
                measure: Measure = import_module(f"tests.bench.{name}").measure
                rows = list(measure(Bench(Path(folder), pairs, say)))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one, the others are measured
            problems.append(f"{name} was not measured: {one_line(error)}")
            continue
        entries += [Entry(name, row, clock.now().date()) for row in rows]
    return entries, problems


def keep(report: Report, folder: Path, *, published: bool) -> None:
    """Write the figures into a checkout, beside those of benchmarks that were not run now, or just here."""
    if published:
        results = folder / RESULTS
        publish(report.after(read_report(results), order=BENCHMARKS) if results.exists() else report, folder)
        return
    report.save(folder / "bench.json")
    (folder / "bench.svg").write_text(draw(report), encoding="utf-8")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; exits with 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure what the system costs, beside limits measured in the same run; writes bench.json and "
        "bench.svg.",
        epilog="example: python -m tests.bench receiver --pairs 3",
    )
    parser.add_argument("names", nargs="*", type=benchmark, metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--pairs", type=positive, default=5, help="undisturbed runs to keep (default: %(default)s)")
    parser.add_argument("--publish", action="store_true", help=f"write {RESULTS}, {PICTURE} and {DOCUMENT} instead")
    return parser.parse_args(arguments)


def benchmark(name: str) -> str:
    """Read the name of one."""
    if name not in BENCHMARKS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(BENCHMARKS)}")
    return name


def positive(value: str) -> int:
    """Read a whole number above zero."""
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise argparse.ArgumentTypeError("must be a whole number above 0")
    return int(value)


def one_line(error: Exception) -> str:
    """Return the first line of what an error says, its type with it unless it was raised to be read."""
    text = (str(error).strip().splitlines() or [""])[0]
    return text if isinstance(error, RuntimeError) and text else f"{type(error).__name__}: {text}"


def say(line: str) -> None:
    """Tell on stderr how far it is."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
