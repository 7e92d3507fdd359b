"""The reckoning after a run, the same each time: nothing lost, nothing twice, nothing hidden."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from shared.config import child_environment
from shared.storage.paths import job_folder
from tests.chaos.handler import LEDGER
from tests.chaos.judgements import Call, answer_problems, file_problems, log_problems, row_problems
from tests.chaos.traffic import Traffic
from tests.chaos.world import ALWAYS, World

if TYPE_CHECKING:
    from tests.chaos.run import Run

COMMAND_SECONDS = 120


def reckon(world: World, traffic: Traffic, run: "Run") -> None:
    """Note everything that is not as it must be; our processes but the api are stopped for it."""
    calls = read_ledger(world.folder / LEDGER)
    run.handled = sum(map(len, calls.values()))
    run.problems += answer_problems(run.answers, run.struck)
    run.problems += job_problems(world, run, calls)
    run.problems += payload_problems(world, traffic)
    run.problems += stray_problems(world)
    run.problems += audit_problems(world)
    run.problems += log_problems(world.logs())


def job_problems(world: World, run: "Run", calls: dict[str, list[Call]]) -> Iterator[str]:
    """Yield what is wrong with each job, noting when it was done."""
    accepted = Counter(answer.job_id for answer in run.answers if answer.accepted)
    tried = Counter(answer.job_id for answer in run.answers)
    for job in world.jobs:
        name = job.job_id
        if job.delivered and not accepted[name]:
            yield f"{name}: no delivery was answered 2xx"
        record = world.store.get_job(name)
        if record is None:
            yield f"{name}: LOST, there is no row"
            continue
        if record.state == "done":
            run.done_at.append(record.updated_at.timestamp())
        for problem in row_problems(job, record, accepted=accepted[name], tried=tried[name]):
            yield f"{name}: {problem}"
        for problem in file_problems(world.disk.root, job, record, calls=calls.get(name, [])):
            yield f"{name}: {problem}"
    run.done_at.sort()


def read_ledger(path: Path) -> dict[str, list[Call]]:
    """Return the handler's notes by job."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        call = json.loads(line)
        calls[call["job_id"]].append(call)
    return calls


def payload_problems(world: World, traffic: Traffic) -> Iterator[str]:
    """Yield the rows whose payload is not the body that was delivered, byte for byte."""
    with psycopg.connect(world.postgres.url) as connection:
        rows = connection.execute("SELECT job_id, payload FROM sume_jobs WHERE source = 'webhook'").fetchall()
    for job_id, payload in rows:
        if payload.encode() != traffic.body(job_id):
            yield f"{job_id}: its payload is not what was delivered"


def stray_problems(world: World) -> Iterator[str]:
    """Yield what lies in the storage and belongs to no job, after one clean-up."""
    for name in ALWAYS:
        if name.startswith(("worker", "scheduler")):
            world.processes[name].kill()
    cleaned = run_command(world, "scheduler", "--once")
    if cleaned.returncode:
        yield f"scheduler --once ended with {cleaned.returncode}: {cleaned.stderr[-500:]}"
    known = {job_folder(job.job_id) for job in world.jobs}
    for path in world.disk.root.iterdir():
        if path.name.startswith("."):
            yield from (f"left in {path.name}: {left}" for left in path.rglob("*") if left.is_file())
        elif path.is_dir() and path.name not in known:
            yield f"a folder of no job: {path.name}"


def audit_problems(world: World) -> Iterator[str]:
    """Yield what `sume-jobs audit` finds."""
    done = run_command(world, "audit", "--json")
    try:
        audit = json.loads(done.stdout)
    except ValueError:
        yield f"the audit ended with {done.returncode}: {done.stderr[-500:]}"
        return
    if done.returncode or not audit["ok"]:
        yield f"the audit finds {audit['problems'][:10]}"
    if audit["checked"] != len(world.jobs):
        yield f"the audit checked {audit['checked']} jobs of {len(world.jobs)}"


def run_command(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `sume-jobs` with the settings of the run, straight to the servers."""
    return subprocess.run(
        [Path(sys.executable).with_name("sume-jobs"), *arguments],
        cwd=world.folder,
        env=child_environment(**world.environment),
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
