"""The answers of the receiver, in raw ASGI and in one shape of error."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi.responses import Response
from starlette.types import Send

from shared.errors import DeliveryError

RETRY_AFTER_SECONDS = 5
INTERNAL_ERROR = "An error of ours; the log of the api has the details."

ACCEPTED = 204
REFUSALS: Mapping[str, int] = {
    "method_not_allowed": 405,
    "body_too_large": 413,
    "unsupported_encoding": 415,
    "signing_secret_not_configured": 500,
    "missing_signature": 401,
    "body_too_slow": 408,
    "bad_signature": 401,
    "stale_timestamp": 401,
    "invalid_json": 400,
    "invalid_job_id": 400,
    "claim_not_stored": 503,
}
"""Every code a delivery may be refused with, in the order of the checks, and its HTTP status."""

EXTRA_HEADERS: Mapping[str, list[tuple[bytes, bytes]]] = {
    "method_not_allowed": [(b"allow", b"POST")],
    "body_too_large": [(b"connection", b"close")],
    "body_too_slow": [(b"connection", b"close")],
    "claim_not_stored": [(b"retry-after", str(RETRY_AFTER_SECONDS).encode())],
}


def error_body(code: str, message: str) -> bytes:
    """Return the one shape of error."""
    return orjson.dumps({"error": {"code": code, "message": message}})


async def send_accepted(send: Send) -> None:
    """Answer 204."""
    await send({"type": "http.response.start", "status": ACCEPTED, "headers": []})
    await send({"type": "http.response.body"})


async def send_refusal(send: Send, error: DeliveryError, *, more_body: bool = False) -> None:
    """Answer with the error's code; with `more_body` the connection stays open until an empty body ends it."""
    body = error_body(error.code, str(error))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *EXTRA_HEADERS.get(error.code, []),
    ]
    await send({"type": "http.response.start", "status": REFUSALS[error.code], "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": more_body})


class ErrorResponse(Response):
    """An error of any other endpoint, in the same shape."""

    media_type = "application/json"

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error_body(code, message), status_code=status, headers=headers)


class JsonResponse(Response):
    """A JSON answer."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Serialise with orjson."""
        return orjson.dumps(content)


class OperatorError(Exception):
    """An endpoint other than the webhook answers with this error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


FAILED = ErrorResponse(500, "internal_error", INTERNAL_ERROR)
"""Answers, as an ASGI app, what nobody foresaw."""
