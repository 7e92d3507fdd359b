"""The webhook: takes one delivery through every check to its one answer."""

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from typing import Protocol, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from api.answers import FAILED, send_accepted, send_refusal
from api.body import ClientGoneError, discard_rest, read_body, too_large
from api.checks import Checks
from api.claim_writers import Outcome
from api.group_commit import GroupCommit
from api.journal import Journal
from api.lane import Lane
from shared.claims.store import ReceivingStore
from shared.config import Settings
from shared.errors import DeliveryError, QuarantinedError, StoreUnavailableError
from shared.event import Event
from shared.sume.payload import Ping, Quarantined, parse_delivery

PATH = "/webhooks/sume"

T = TypeVar("T")


class Answering(Protocol):
    """Answers the one request it was made for."""

    def accept(self) -> None:
        """Answer 204."""
        ...

    def run(self, app: ASGIApp) -> None:
        """Let an ASGI app answer."""
        ...


class Webhook:
    """The receiver as a plain ASGI endpoint: 2xx is answered only after the claim is durable (I3)."""

    def __init__(
        self,
        settings: Settings,
        *,
        checks: Checks,
        store: ReceivingStore,
        group_commit: GroupCommit,
        lane: Lane,
        journal: Journal,
    ) -> None:
        self._checks = checks
        self._store = store
        self._group_commit = group_commit
        self._lane = lane
        self._journal = journal
        self._limit = settings.webhook_max_bytes
        self._time_limit = settings.webhook_timeout_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI's one method
        started = time.monotonic()
        try:
            code = await self._take(scope, receive, started=started)
        except ClientGoneError:
            self._journal.abandoned(started=started)
        except DeliveryError as error:
            self._journal.refused(error, scope["headers"], started=started)
            await answer_refusal(error, receive, send)
        except Exception as error:  # noqa: BLE001 - logged, and answered so that Sume delivers again
            self._journal.failed(error, started=started)
            await FAILED(scope, receive, send)
        else:
            self._journal.accepted(code)
            await send_accepted(send)

    async def _take(self, scope: Scope, receive: Receive, *, started: float) -> str:
        """Check one delivery and make it durable; returns how it is counted."""
        deadline = asyncio.get_running_loop().time() + self._time_limit
        self._checks.check_announced(scope["method"], scope["headers"])
        signatures, timestamp = self._checks.read_signature(scope["headers"])
        body = await read_body(receive, limit=self._limit, deadline=deadline)
        self._journal.signed(self._checks.check_signature(signatures, timestamp, body))
        try:
            delivery = parse_delivery(body)
        except QuarantinedError as error:
            await self._quarantine(body, reason=error.code, deadline=deadline, started=started)
            raise
        match delivery:
            case Ping():
                self._journal.tested(started=started)
                return "tested"
            case Quarantined(reason=reason):
                await self._quarantine(body, reason=reason, deadline=deadline, started=started)
                return "quarantined"
            case Event():
                await self._claim(delivery, deadline=deadline, started=started)
                return "accepted"

    async def _claim(self, event: Event, *, deadline: float, started: float) -> None:
        try:
            result = await self._group_commit.claim(event, deadline=deadline)
        except StoreUnavailableError as error:
            raise not_stored() from error
        self._journal.claimed(event, result, started=started)

    async def _quarantine(self, body: bytes, *, reason: str, deadline: float, started: float) -> None:
        """Keep a genuine body that cannot be claimed, before it is answered."""
        await stored(self._submit(partial(self._store.quarantine, body, reason=reason)), deadline=deadline)
        self._journal.quarantined(body, reason=reason, started=started)

    async def _submit(self, call: partial[None]) -> None:
        await self._lane.submit(call)

    def take_whole(self, scope: Scope, body: bytes, answering: Answering) -> bool:
        """Claim an event of which every byte is here, and answer through `answering` when that is durable (I3).

        False for everything but a genuine event that can be claimed now: nothing was done or noted then, and
        `__call__` finds the same. What it does is what `__call__` does, without a task, its coroutines and ASGI's
        messages.
        """
        started = time.monotonic()
        deadline = asyncio.get_running_loop().time() + self._time_limit
        try:
            tags, event = self._read_whole(scope, body)
            if event is None:
                return False
            settle = partial(self._answer_whole, event, tags, scope, answering, started)
            self._group_commit.begin(event, settle, deadline=deadline)
        except Exception:  # noqa: BLE001 - the other way meets it again, and tells of it
            return False
        return True

    def _read_whole(self, scope: Scope, body: bytes) -> tuple[list[str], Event | None]:
        """Return which secrets signed a delivery, and its event where it is one; raises DeliveryError."""
        self._checks.check_announced(scope["method"], scope["headers"])
        signatures, timestamp = self._checks.read_signature(scope["headers"])
        if len(body) > self._limit:
            raise too_large(self._limit)
        tags = self._checks.check_signature(signatures, timestamp, body)
        delivery = parse_delivery(body)
        return tags, delivery if isinstance(delivery, Event) else None

    def _answer_whole(
        self,
        event: Event,
        tags: list[str],
        scope: Scope,
        answering: Answering,
        started: float,
        outcome: Outcome,
    ) -> None:
        try:
            self._journal.signed(tags)
            if isinstance(outcome, StoreUnavailableError):
                error = not_stored()
                error.__cause__ = outcome
                self._journal.refused(error, scope["headers"], started=started)
                answering.run(partial(refuse, error))
                return
            self._journal.claimed(event, outcome, started=started)
            self._journal.accepted("accepted")
            answering.accept()
        except Exception as error:  # noqa: BLE001 - logged, and answered so that Sume delivers again
            try:
                self._journal.failed(error, started=started)
            finally:
                answering.run(FAILED)


async def stored(writing: Awaitable[T], *, deadline: float) -> T:
    """Return when the write is done; else raise what makes Sume send the delivery again."""
    try:
        async with asyncio.timeout_at(deadline):
            return await writing
    except StoreUnavailableError as error:
        raise not_stored() from error
    except TimeoutError:
        raise not_stored() from StoreUnavailableError("the database did not answer in time")


def not_stored() -> DeliveryError:
    """Return the refusal that makes Sume send the delivery again."""
    return DeliveryError(
        "claim_not_stored", "The delivery could not be stored; send it again after Retry-After seconds."
    )


async def refuse(error: DeliveryError, _scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as an ASGI app that refuses whatever it is asked."""
    await answer_refusal(error, receive, send)


async def answer_refusal(error: DeliveryError, receive: Receive, send: Send) -> None:
    """Answer; one whose body is too large to read is answered before it has sent everything."""
    if error.code != "body_too_large":
        await send_refusal(send, error)
        return
    await send_refusal(send, error, more_body=True)
    await discard_rest(receive)
    await send({"type": "http.response.body"})
