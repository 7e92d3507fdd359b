"""The one door for claims: claim, then enqueue what is new (I3)."""

from collections.abc import Sequence
from typing import Protocol

from shared.claims.records import Claim, ClaimResult, Message
from shared.claims.store import ReceivingStore
from shared.errors import QueueUnavailableError
from shared.event import Event
from shared.logs import get_logger

log = get_logger()


class Producer(Protocol):
    """What takes messages for Redis: the queue itself, or the receiver's drainer before it."""

    def enqueue_many(self, messages: Sequence[Message]) -> None:
        """Send the messages, or raise QueueUnavailableError."""
        ...


class Intake:
    """Receiver, poller, sweeper and operator all come through here.

    Guarantee: a message is sent only for a claim that is stored. Limit: it may not be sent at all (Redis is away,
    the process dies in between); the sweep sends it then.
    """

    def __init__(self, store: ReceivingStore, producer: Producer) -> None:
        self._store = store
        self._producer = producer

    def claim(self, events: Sequence[Event]) -> list[ClaimResult]:
        """Claim the events' jobs and enqueue those that are new; results in the order given.

        Raises StoreUnavailableError; then nothing was enqueued.
        """
        results = self._store.claim_many([Claim(event) for event in events])
        self.follow(events, results)
        return results

    def follow(self, events: Sequence[Event], results: Sequence[ClaimResult]) -> None:
        """Enqueue what is new of claims that are stored, and tell of contradictions."""
        self.enqueue([Message(r.job_id, r.event, r.status, 1) for r in results if r.new])  # I3: only after the commit
        for event, result in zip(events, results, strict=True):
            if result.conflict:
                log.warning(
                    "claim.conflicted",
                    job_id=event.job_id,
                    event_kept=result.event,
                    status_kept=result.status,
                    event_named=event.name,
                    status_named=event.status,
                    named_by=event.source,
                )

    def enqueue(self, messages: Sequence[Message]) -> bool:
        """Send messages for stored claims; False when Redis is away, which the sweep repairs (I1)."""
        if not messages:
            return True
        try:
            self._producer.enqueue_many(messages)
        except QueueUnavailableError as error:
            log.warning("enqueue.failed", messages=len(messages), error=str(error))
            return False
        return True
