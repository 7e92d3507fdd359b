"""The webhook: takes one delivery through every check to its one answer."""

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

from starlette.types import Receive, Scope, Send

from api.answers import INTERNAL_ERROR, REFUSALS, ErrorResponse, send_accepted, send_refusal
from api.body import ClientGoneError, discard_rest, read_body
from api.checks import Checks, Headers
from api.group_commit import GroupCommit
from api.lane import Lane
from api.tally import Tally
from shared.claims.store import ReceivingStore
from shared.config import Settings
from shared.errors import DeliveryError, QuarantinedError, StoreUnavailableError
from shared.event import Event
from shared.logs import get_logger
from shared.metrics import Metrics
from shared.sume.payload import Ping, Quarantined, parse_delivery

PATH = "/webhooks/sume"
LOGGED_NAMES = 50
SERVER_FAULTS = 500

T = TypeVar("T")

log = get_logger()


class Webhook:
    """The receiver as a plain ASGI endpoint: 2xx is answered only after the claim is durable (I3)."""

    def __init__(  # noqa: PLR0913 - wired once, by create_app
        self,
        settings: Settings,
        *,
        checks: Checks,
        store: ReceivingStore,
        group_commit: GroupCommit,
        lane: Lane,
        tally: Tally,
        metrics: Metrics,
    ) -> None:
        self._checks = checks
        self._store = store
        self._group_commit = group_commit
        self._lane = lane
        self._tally = tally
        self._metrics = metrics
        self._limit = settings.webhook_max_bytes
        self._time_limit = settings.webhook_timeout_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI's one method
        started = time.monotonic()
        try:
            code = await self._take(scope, receive, started=started)
        except ClientGoneError:
            log.info("delivery.abandoned", seconds=elapsed(started))
        except DeliveryError as error:
            self._note_refusal(error, scope["headers"], started=started)
            await answer_refusal(error, receive, send)
        except Exception:
            log.exception("delivery.failed", seconds=elapsed(started))
            self._metrics.delivery_answered("internal_error")
            await ErrorResponse(500, "internal_error", INTERNAL_ERROR)(scope, receive, send)
        else:
            self._metrics.delivery_answered(code)
            self._tally.accepted()
            await send_accepted(send)

    async def _take(self, scope: Scope, receive: Receive, *, started: float) -> str:
        """Check one delivery and make it durable; returns how it is counted."""
        deadline = asyncio.get_running_loop().time() + self._time_limit
        self._checks.check_announced(scope["method"], scope["headers"])
        signatures, timestamp = self._checks.read_signature(scope["headers"])
        body = await read_body(receive, limit=self._limit, deadline=deadline)
        self._tally.signed(self._checks.check_signature(signatures, timestamp, body))
        try:
            delivery = parse_delivery(body)
        except QuarantinedError as error:
            await self._quarantine(body, reason=error.code, deadline=deadline, started=started)
            raise
        match delivery:
            case Ping():
                self._tally.tested()
                log.info("delivery.tested", seconds=elapsed(started))
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
        if not result.new and result.deliveries > 1:
            self._tally.redelivered()
        log.info(
            "delivery.accepted",
            job_id=event.job_id,
            event_named=event.name,
            new=result.new,
            deliveries=result.deliveries,
            seconds=elapsed(started),
        )

    async def _quarantine(self, body: bytes, *, reason: str, deadline: float, started: float) -> None:
        """Keep a genuine body that cannot be claimed, before it is answered."""
        await stored(self._submit(partial(self._store.quarantine, body, reason=reason)), deadline=deadline)
        log.warning("delivery.quarantined", reason=reason, bytes=len(body), seconds=elapsed(started))

    async def _submit(self, call: partial[None]) -> None:
        await self._lane.submit(call)

    def _note_refusal(self, error: DeliveryError, headers: Headers, *, started: float) -> None:
        self._metrics.delivery_answered(error.code)
        names = header_names(headers)
        self._tally.refused(error.code, headers=names)
        cause = error.__cause__
        note = log.info if REFUSALS[error.code] < SERVER_FAULTS else log.warning
        note(
            "delivery.refused",
            code=error.code,
            problem=str(cause if isinstance(cause, StoreUnavailableError) else error),
            headers=names,
            seconds=elapsed(started),
        )


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


async def answer_refusal(error: DeliveryError, receive: Receive, send: Send) -> None:
    """Answer; one whose body is too large to read is answered before it has sent everything."""
    if error.code != "body_too_large":
        await send_refusal(send, error)
        return
    await send_refusal(send, error, more_body=True)
    await discard_rest(receive)
    await send({"type": "http.response.body"})


def header_names(headers: Headers) -> list[str]:
    """Return the names of the headers received, bounded, never a value (I9)."""
    return [name[:100].decode("latin-1") for name, _ in headers[:LOGGED_NAMES]]


def elapsed(started: float) -> float:
    """Return the seconds since `started`, as logged."""
    return round(time.monotonic() - started, 4)
