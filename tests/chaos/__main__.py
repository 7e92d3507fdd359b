"""The command behind `make chaos`."""

import argparse
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from tests.chaos.disk import own_mounts
from tests.chaos.matrix import FULL, SHORT, Matrix
from tests.chaos.run import Run, play
from tests.chaos.schedule import round_seconds

SHORT_SECONDS = 55
SHOWN_PROBLEMS = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the seeds, print the matrix, return 1 when anything was lost or came twice."""
    options = parse(arguments)
    first = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    own_mounts()
    matrix = Matrix()
    if options.report is not None and options.report.exists():
        matrix.read(options.report)
    failed = []
    with ExitStack() as opened:
        side_by_side = opened.enter_context(ThreadPoolExecutor(options.at_once)).map if options.at_once > 1 else map
        for run in side_by_side(lambda seed: play_seed(seed, options), range(first, first + options.seeds)):
            matrix.add(run)
            failed += [run.seed] if run.problems else []
            if options.report is not None:
                matrix.save(options.report)
    say(matrix.table())
    if failed:
        say(f"FAILED: seeds {', '.join(map(str, failed))}")
        return 1
    say(f"nothing lost, nothing twice: {matrix.summary()}")
    if options.publish:
        matrix.publish(Path.cwd())
    return 0


def play_seed(seed: int, options: argparse.Namespace) -> Run:
    """Play one seed in a folder of its own, which stays when something is wrong."""
    length = timedelta(seconds=SHORT_SECONDS if options.short else options.seconds or round_seconds(seed))
    say(
        f"seed {seed}: {options.jobs} jobs, {length.total_seconds():.0f} s of faults; again with: "
        f"python -m tests.chaos --seed {seed} --seeds 1 --jobs {options.jobs}{' --short' if options.short else ''}"
    )
    folder = Path(tempfile.mkdtemp(prefix=f"sume-jobs-chaos-{seed}-"))
    run = play(folder, seed=seed, jobs=options.jobs, length=length)
    tell(run)
    if run.problems:
        say(f"  kept for you: {folder}")
    else:
        shutil.rmtree(folder)
    return run


def tell(run: Run) -> None:
    """Print what one run came to."""
    codes = ", ".join(
        f"{count} x {word}" for word, count in Counter(answer.word for answer in run.answers).most_common()
    )
    say(
        f"seed {run.seed}: {len(run.struck)} faults in {run.seconds:.0f} s, calm {run.calm_seconds:.1f} s after the "
        f"last; {len(run.done_at)} jobs done, {run.handled} handler calls; answers: {codes}"
    )
    for name, why in run.skipped.items():
        say(f"  skipped {name}: {why}")
    for problem in run.problems[:SHOWN_PROBLEMS]:
        say(f"  PROBLEM {problem}")
    if len(run.problems) > SHOWN_PROBLEMS:
        say(f"  and {len(run.problems) - SHOWN_PROBLEMS} more")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description="Run the whole system under a seeded schedule of faults, and reckon.",
        epilog="example: python -m tests.chaos --seed 7 --seeds 1 --jobs 2000",
    )
    parser.add_argument("--seed", type=int, help="the first seed (default: a fresh one, which is printed)")
    parser.add_argument("--seeds", type=int, default=10, help="how many (default %(default)s)")
    parser.add_argument("--at-once", type=int, default=1, help="how many side by side (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=2000, help="jobs of each run (default %(default)s)")
    parser.add_argument("--seconds", type=float, help="of faults in each run (default: until each has struck once)")
    parser.add_argument("--short", action="store_true", help=f"{SHORT_SECONDS} s of faults, whichever come up")
    parser.add_argument("--report", type=Path, help="add what was measured to this file, in JSON")
    parser.add_argument("--publish", action="store_true", help=f"write {FULL} and the matrix in {SHORT}")
    return parser.parse_args(arguments)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
