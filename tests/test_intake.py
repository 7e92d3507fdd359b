"""The one door: claim first, enqueue what is new, and survive a queue that is away."""

from collections.abc import Sequence

import pytest

from shared.claims.records import Message
from shared.claims.store import Store
from shared.errors import QueueUnavailableError, StoreUnavailableError
from shared.intake import Intake
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.subject import event


class Recorder:
    """A producer that keeps what it is given, and what the store knew at that moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.messages: list[Message] = []
        self.states: list[str] = []
        self.away = False

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Keep the messages, or be away."""
        if self.away:
            raise QueueUnavailableError("Redis: refused")
        for message in messages:
            job = self._store.get_job(message.job_id)
            self.states.append(job.state if job else "unknown")
        self.messages += messages


@pytest.fixture
def subject(database_url: str) -> PostgresSubject:
    return PostgresSubject(database_url)


def test_only_new_claims_are_enqueued_and_only_after_they_are_stored(subject: PostgresSubject) -> None:
    """I3: whoever takes the message finds the claim."""
    recorder = Recorder(subject.store)
    intake = Intake(subject.store, recorder)
    intake.claim([event("job_a"), event("job_b", "job.failed"), event("job_a")])
    intake.claim([event("job_a")])
    assert [(m.job_id, m.event, m.status, m.attempt) for m in recorder.messages] == [
        ("job_a", "job.completed", "OK", 1),
        ("job_b", "job.failed", "ERROR", 1),
    ]
    assert recorder.states == ["claimed", "claimed"]
    subject.store.close()


def test_a_queue_that_is_away_does_not_undo_a_claim(subject: PostgresSubject) -> None:
    """The claim stands and the sweep sends the message (I1)."""
    recorder = Recorder(subject.store)
    recorder.away = True
    intake = Intake(subject.store, recorder)
    [result] = intake.claim([event("job_a")])
    assert result.new
    assert subject.state("job_a") == "claimed"
    assert not intake.enqueue([Message("job_a", "job.completed", "OK", 1)])
    assert intake.enqueue([])
    subject.store.close()


def test_nothing_is_enqueued_when_nothing_was_stored(subject: PostgresSubject) -> None:
    """A claim that failed leaves no message behind."""
    recorder = Recorder(subject.store)
    with pytest.raises(StoreUnavailableError):
        Intake(subject.store, recorder).claim([event("-not a job id")])
    assert recorder.messages == []
    subject.store.close()
