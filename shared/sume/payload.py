"""What a signed body means: an event to claim, a test, or something to keep in quarantine."""

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from shared.claims.states import Reason
from shared.errors import PermanentError, QuarantinedError
from shared.event import EVENT_NAMES, Event, EventName, Status
from shared.logs import Redactor
from shared.sume.strict_json import read_object, read_object_exactly

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
TEST_EVENT = "webhook.test"
MAX_STATUS_URL = 2048
MAX_ERROR_PART = 1000
MAX_ERROR_LINE = 500

QuarantineReason: TypeAlias = Literal["invalid_json", "invalid_job_id", "no_job_id", "unknown_event"]


@dataclass(frozen=True, slots=True)
class Ping:
    """A `webhook.test`: answered and counted, nothing is stored."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An accepted body, as Sume would send nothing better, that is kept in quarantine instead of claimed."""

    reason: QuarantineReason


def is_job_id(text: object) -> bool:
    """Whether this is a job_id: 1-128 of A-Z a-z 0-9 . _ : - starting with a letter or digit."""
    return isinstance(text, str) and JOB_ID.fullmatch(text) is not None


def status_of(event: EventName) -> Status:
    """Return the status an event has by itself."""
    return "OK" if event == "job.completed" else "ERROR"


def parse_delivery(body: bytes) -> Event | Ping | Quarantined:
    """Judge a genuine body in the order of CONTRACT section 4.

    Raises QuarantinedError, whose code is also the reason it is quarantined under, where the answer is a 400.
    """
    try:
        document, job_id_repeated = read_object(body)
    except ValueError as error:
        raise QuarantinedError("invalid_json", f"The body is not usable JSON: {first_line(error)}") from None
    name, job_id = document.get("event"), document.get("job_id")
    if name == TEST_EVENT:
        return Ping()
    if job_id_repeated:
        raise QuarantinedError("invalid_job_id", "The body gives job_id more than once; send it once.")
    if job_id is None:
        return Quarantined("no_job_id")
    if not is_job_id(job_id):
        raise QuarantinedError(
            "invalid_job_id",
            "job_id must be a string of 1-128 of A-Z a-z 0-9 . _ : - starting with a letter or digit.",
        )
    if name not in EVENT_NAMES:
        return Quarantined("unknown_event")
    return read_event(document, job_id=job_id, name=name, payload=body.decode("utf-8"))


def read_event(document: dict[str, Any], *, job_id: str, name: EventName, payload: str) -> Event:
    """Return the event of a body whose job_id and event are known to be good."""
    natural, stated = status_of(name), document.get("status")
    status: Status = stated if stated in ("OK", "ERROR") else natural
    return Event(
        job_id=job_id,
        name=name,
        status=status,
        payload=payload,
        status_url=read_status_url(document.get("status_url")),
        error=error_line(document.get("error")) if status == "ERROR" else None,
        conflict=None if status == natural else f"status {status}",
    )


def read_status_url(value: object) -> str | None:
    """Return a status_url that can be kept: printable ASCII of sane length."""
    usable = isinstance(value, str) and 0 < len(value) <= MAX_STATUS_URL and value.isascii() and value.isprintable()
    return value if usable and isinstance(value, str) else None


def error_line(error: object) -> str | None:
    """Return Sume's error object as one bounded line without control characters and URL queries (I9)."""
    if not isinstance(error, dict):
        return None
    code, message, public_reason = (error.get(key) for key in ("code", "message", "public_reason"))
    parts = [printable(part) for part in (code, message) if isinstance(part, str)]
    line = ": ".join(part for part in parts if part)
    if isinstance(public_reason, str) and printable(public_reason):
        line = f"{line} ({printable(public_reason)})".lstrip()
    return Redactor().text(line)[:MAX_ERROR_LINE] or None


def error_keys(error: object) -> dict[str, str] | None:
    """Return of Sume's error object what a delivery's has; None when there is nothing of it."""
    if not isinstance(error, dict):
        return None
    named = {key: error.get(key) for key in ("code", "message", "public_reason")}
    return {key: printable(text) for key, text in named.items() if isinstance(text, str)} or None


def printable(text: str) -> str:
    """Return the start of a text on one line, without control characters and lone surrogates."""
    return " ".join("".join(c if c.isprintable() else " " for c in text[:MAX_ERROR_PART]).split())


def parse_payload(payload: str) -> dict[str, Any]:
    """Return a stored payload for the handler, integers exact, a BOM skipped.

    Raises PermanentError with reason invalid_payload when it is not a JSON object, which a plain insert
    by another receiver may cause.
    """
    try:
        document, _ = read_object_exactly(payload.encode("utf-8"))
    except ValueError as error:
        message = f"The stored payload is not usable JSON: {first_line(error)}"
        raise PermanentError(message, reason=Reason.INVALID_PAYLOAD) from None
    return document


def first_line(error: ValueError) -> str:
    """Return what is wrong with a body, repeating none of it."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8"
    return str(error)
