"""Reopening jobs: one after the other in the store, their messages in batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from shared.claims.records import Message, Requeued
from shared.claims.states import Reason
from shared.claims.store import Store
from shared.cli.session import full_session
from shared.cli.terminal import complain, note, progress_bar, say
from shared.errors import QueueUnavailableError, UsageError
from shared.intake import Intake
from shared.queue import Queue

BATCH = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dead jobs to reopen."""

    reason: str | None
    since: timedelta | None


class Sending:
    """The queue, which keeps to itself why it could not send: the sweep sends it then (I1)."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.failure: QueueUnavailableError | None = None

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """See Producer.enqueue_many."""
        try:
            self._queue.enqueue_many(messages)
        except QueueUnavailableError as error:
            self.failure = error


def requeue_named(job_ids: Sequence[str], *, force: bool) -> int:
    """Reopen these jobs; return the exit status."""
    with full_session() as (_settings, store, queue):
        failures = reopen(job_ids, store=store, queue=queue, force=force)
    for failure in failures:
        complain(failure)
    return 1 if failures else 0


def requeue_all(wanted: Wanted) -> int:
    """Reopen all dead jobs that are wanted; one that another operator reopened meanwhile is no failure."""
    reason = read_reason(wanted.reason)
    with full_session() as (_settings, store, queue):
        reopen(store.dead_job_ids(reason=reason, since=wanted.since), store=store, queue=queue, force=False)
    return 0


def read_reason(text: str | None) -> Reason | None:
    """Return the reason; raises UsageError, with the list of all, for one that no job has."""
    try:
        return None if text is None else Reason(text)
    except ValueError:
        raise UsageError(f"--reason {text!r} is not one of {', '.join(Reason)}") from None


def reopen(job_ids: Sequence[str], *, store: Store, queue: Queue, force: bool) -> list[str]:
    """Reopen jobs, say how many, and return what is wrong with the others."""
    sending = Sending(queue)
    intake, failures, reopened = Intake(store, sending), list[str](), 0
    with progress_bar("requeue", total=len(job_ids)) as step:
        for start in range(0, len(job_ids), BATCH):
            messages: list[Message] = []
            try:
                for job_id in job_ids[start : start + BATCH]:
                    done = store.requeue(job_id, force=force)
                    if (failure := failure_of(job_id, done)) is not None:
                        failures.append(failure)
                    else:
                        reopened += 1
                    messages += [] if done.message is None else [done.message]
                    step()
            finally:  # stopped or cut off from the store: what is reopened is still sent
                intake.enqueue(messages)
    say(f"requeued: {reopened}")
    if sending.failure is not None:
        note(f"{sending.failure}; the scheduler's sweep will queue what was reopened")
    return failures


def failure_of(job_id: str, done: Requeued) -> str | None:
    """Return why a job was not reopened, None when it was."""
    match done.outcome:
        case "requeued" | "expected":
            return None
        case "unknown":
            return f"{job_id} is unknown"
        case "pruned":
            return f"{job_id} is done and its details are pruned: there is nothing left to run"
        case "not_dead":
            advice = "; --force runs it again" if done.state == "done" else ""
            return f"{job_id} is {done.state}, not dead{advice}"
