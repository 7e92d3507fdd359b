"""What must hold for each job, for the answers and for the logs of a chaos run; without any connection."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from shared.claims.records import JobRecord
from shared.storage.paths import MANIFEST, job_folder
from tests.chaos.jobs import POISON, PlannedJob
from tests.chaos.traffic import Answer

FORESEEN_ERRORS = frozenset({"job.buried", "receiver.died", "worker.ended", "worker.killed"})
"""What faults must make the logs say as errors; any other is a defect."""
STARTS_WITHIN_SECONDS = 30
"""So long after a fault of its process, the api answers again."""

Call: TypeAlias = Mapping[str, Any]
"""One line of the handler's ledger."""


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that was done, and when, in Unix seconds."""

    name: str
    began: float
    ended: float


def answer_problems(answers: Sequence[Answer], struck: Sequence[Struck]) -> Iterator[str]:
    """Yield the answers that no fault of that time explains: 204 and 503 are all that a fault elsewhere may cause."""
    down = [prolonged(fault, answers) for fault in struck if fault.name.startswith("api: ")]
    wrong_clock = [fault for fault in down if "clock" in fault.name]
    explained = {0: down, 204: None, 401: wrong_clock, 408: down, 503: None}
    unexplained: Counter[str] = Counter()
    for answer in answers:
        faults = explained.get(answer.code, [])
        if faults is not None and not any(overlaps(answer, fault) for fault in faults):
            unexplained[answer.word] += 1
    yield from (f"{count} deliveries got {word} for no reason" for word, count in unexplained.items())


def overlaps(answer: Answer, fault: Struck) -> bool:
    """Whether a delivery was under way while a fault lasted."""
    return fault.began <= answer.ended and answer.begun <= fault.ended


def prolonged(fault: Struck, answers: Sequence[Answer]) -> Struck:
    """Return a fault of the api as lasting until it answers again, for it takes a moment to start."""
    if not fault.name.startswith("api: "):
        return fault
    latest = fault.ended + STARTS_WITHIN_SECONDS
    again = (answer.ended for answer in answers if answer.code and answer.begun >= fault.ended)
    return replace(fault, ended=min([latest, *again]))


def row_problems(job: PlannedJob, record: JobRecord, *, accepted: int, tried: int) -> Iterator[str]:
    """Yield how a row differs from how the job must end; the numbers are those of its deliveries."""
    wanted = ("dead", "worker_lost") if job.kind == POISON else ("done", None)
    if (record.state, record.reason) != wanted:
        yield f"{record.state} ({record.reason}: {record.error}) instead of {wanted[0]}: {ending(record)}"
    event = "job.failed" if job.outcome == "failed" else "job.completed"
    if record.event not in {event, None}:
        yield f"event {record.event} instead of {event}"
    if not accepted <= record.deliveries <= tried:
        yield f"{record.deliveries} deliveries counted, {accepted} answered 2xx, {tried} made"


def ending(record: JobRecord) -> str:
    """Return the end of a job's timeline in one line."""
    return " | ".join(
        f"{entry.at:%H:%M:%S} {entry.state} {entry.cause} {entry.detail}" for entry in record.timeline[-6:]
    )


def file_problems(root: Path, job: PlannedJob, record: JobRecord, *, calls: Sequence[Call]) -> Iterator[str]:
    """Yield how a done job's files, records and calls of its handler differ from what Sume hosts and each other."""
    if record.state != "done":
        return
    folder = root / job_folder(job.job_id)
    wanted = [(file.content.size, file.content.sha256) for file in job.files]
    recorded = [(artifact.bytes, artifact.sha256) for artifact in record.artifacts]
    if recorded != wanted:
        yield f"recorded files {recorded} instead of {wanted}"
    names = [artifact.path.rpartition("/")[2] for artifact in record.artifacts]
    present = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if present != (sorted([*names, MANIFEST]) if job.files else []):
        yield f"its folder holds {present}"
    on_disk = []
    for name, facts in zip(names, wanted, strict=False):
        if name in present:
            content = (folder / name).read_bytes()
            if (len(content), hashlib.sha256(content).hexdigest()) != facts:
                yield f"{name} on disk is not what Sume hosts"
            on_disk.append([name, (folder / name).stat().st_ino, facts[1]])
    if not calls:
        yield "done without one call of its handler"
    if any(call["files"] != on_disk for call in calls):
        yield f"its files are not those its handler saw: {[call['files'] for call in calls]}, now {on_disk}"


def log_problems(logs: str) -> Iterator[str]:
    """Yield what the logs say was done twice, and errors that no fault explains."""
    done: Counter[tuple[str, str]] = Counter()
    unforeseen: Counter[str] = Counter()
    for line in filter(None, logs.splitlines()):
        try:
            entry = json.loads(line)
            event = entry["event"]
        except (ValueError, TypeError, KeyError):
            unforeseen[f"no log line: {line[:300]}"] += 1
            continue
        if event == "job.done":
            done[event, entry["job_id"]] += 1
        elif event == "artifact.published":
            done[event, entry["path"]] += 1
        elif entry.get("level") in {"error", "critical"} and event not in FORESEEN_ERRORS:
            unforeseen[f"{event}: {line[:600]}"] += 1
    yield from (f"{count} times {' '.join(what)}" for what, count in done.items() if count > 1)
    yield from (f"in the logs, {count} times {what}" for what, count in unforeseen.items())
