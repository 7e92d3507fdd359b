"""The command `python -m tests.mutants`: every mutant in a copy of the tree, and whether a test noticed."""

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue

from tests.mutants import claim, lease, publish, signature
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("api", "scheduler", "shared", "tests", "worker", "pyproject.toml")
MUTANTS = (*claim.MUTANTS, *lease.MUTANTS, *publish.MUTANTS, *signature.MUTANTS)
FAILED = re.compile(r"^FAILED \S+::(\w+)", re.MULTILINE)
PASSED_STATUS, FAILED_STATUS = 0, 1
RUN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant; `killer` is the test that noticed, None where all of them passed."""

    mutant: Mutant
    killer: str | None
    seconds: float


def copy_tree(to: Path) -> Path:
    """Copy what the tests need; the tree that is worked on is never edited."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, to / name)
    # By hash: a .pyc told by second and size of its source would hide an edit of equal length made at once.
    compileall.compile_dir(to, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return to


def run_tests(root: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run these tests on the sources below `root`, up to the first failure."""
    options = ["-x", "-q", "--tb=short", "-p", "no:randomly", "-p", "no:cacheprovider", "--timeout=60"]
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}  # noqa: TID251 - the tests' own
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=root, env=env, capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip


def judge(mutant: Mutant, root: Path) -> Verdict:
    """Break the promise below `root`, run the tests that are to notice, and mend it again."""
    started = time.monotonic()
    before = mutant.apply(root)
    try:
        done = run_tests(root, mutant.tests)
    finally:
        (root / mutant.file).write_text(before, encoding="utf-8")
    found = FAILED.search(done.stdout)
    if done.returncode == PASSED_STATUS:
        killer = None
    elif done.returncode == FAILED_STATUS and found:
        killer = found[1]
    else:  # the edit is no Python, or no test could be started: that proves nothing
        raise RuntimeError(f"the tests of `{mutant.breaks}` could not run:\n{done.stdout}{done.stderr}")
    return Verdict(mutant, killer, time.monotonic() - started)


def judge_all(mutants: Sequence[Mutant], roots: Sequence[Path]) -> list[Verdict]:
    """Judge the mutants, as many at once as there are copies of the tree; each is printed when it is known."""
    free: SimpleQueue[Path] = SimpleQueue()
    for root in roots:
        free.put(root)

    def judge_one(mutant: Mutant) -> Verdict:
        root = free.get()
        try:
            verdict = judge(mutant, root)
        finally:
            free.put(root)
        killer = verdict.killer or "SURVIVED"
        sys.stdout.write(f" {mutant.promise:9}  {mutant.breaks:62}  {verdict.seconds:5.1f} s  {killer}\n")
        sys.stdout.flush()
        return verdict

    with ThreadPoolExecutor(len(roots)) as pool:
        return list(pool.map(judge_one, mutants))


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge every mutant; 0 when a test noticed each of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Break promises; tests must notice.")
    parser.add_argument("--only", default="", help="only mutants whose promise or text holds this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (default: %(default)s)")
    options = parser.parse_args(arguments)
    mutants = [mutant for mutant in MUTANTS if options.only in f"{mutant.promise}: {mutant.breaks}"]
    with tempfile.TemporaryDirectory(prefix="sume-jobs-mutants-") as folder:
        # Readable for the other uid that PostgreSQL runs under when this runs as root.
        Path(folder).chmod(0o755)
        roots = [copy_tree(Path(folder, str(number))) for number in range(options.jobs)]
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        unbroken = run_tests(roots[0], tests)
        if unbroken.returncode != PASSED_STATUS:
            sys.stderr.write(f"the tests fail on the unbroken tree:\n{unbroken.stdout}{unbroken.stderr}")
            return 1
        verdicts = judge_all(mutants, roots)
    survivors = [verdict.mutant.breaks for verdict in verdicts if verdict.killer is None]
    sys.stdout.write(f"{len(verdicts)} mutants, {len(survivors)} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
