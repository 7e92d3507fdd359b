"""What is logged and counted of each delivery."""

import time

from api.answers import REFUSALS
from api.checks import Headers
from api.tally import Tally
from shared.claims.records import ClaimResult
from shared.errors import DeliveryError, StoreUnavailableError
from shared.event import Event
from shared.logs import get_logger
from shared.metrics import Metrics

LOGGED_NAMES = 50
SERVER_FAULTS = 500

log = get_logger()


class Journal:
    """One line of the log and one count for each delivery, the same whichever way it was taken.

    `started` is when the delivery began, by `time.monotonic()`.
    """

    def __init__(self, *, tally: Tally, metrics: Metrics) -> None:
        self._tally = tally
        self._metrics = metrics

    def signed(self, tags: list[str]) -> None:
        """Note which secrets signed a genuine delivery."""
        self._tally.signed(tags)

    def claimed(self, event: Event, result: ClaimResult, *, started: float) -> None:
        """Note a claim that is durable."""
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

    def tested(self, *, started: float) -> None:
        """Note a `webhook.test`."""
        self._tally.tested()
        log.info("delivery.tested", seconds=elapsed(started))

    def quarantined(self, body: bytes, *, reason: str, started: float) -> None:
        """Note a body that was kept in quarantine."""
        log.warning("delivery.quarantined", reason=reason, bytes=len(body), seconds=elapsed(started))

    def accepted(self, code: str) -> None:
        """Count one delivery that is answered 2xx."""
        self._metrics.delivery_answered(code)
        self._tally.accepted()

    def refused(self, error: DeliveryError, headers: Headers, *, started: float) -> None:
        """Note a refusal, and which headers came with it."""
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

    def abandoned(self, *, started: float) -> None:
        """Note a client that hung up before its body was complete."""
        log.info("delivery.abandoned", seconds=elapsed(started))

    def failed(self, error: Exception, *, started: float) -> None:
        """Note a defect of ours."""
        log.error("delivery.failed", exc_info=error, seconds=elapsed(started))
        self._metrics.delivery_answered("internal_error")


def header_names(headers: Headers) -> list[str]:
    """Return the names of the headers received, bounded, never a value (I9)."""
    return [name[:100].decode("latin-1") for name, _ in headers[:LOGGED_NAMES]]


def elapsed(started: float) -> float:
    """Return the seconds since `started`, as logged."""
    return round(time.monotonic() - started, 4)
