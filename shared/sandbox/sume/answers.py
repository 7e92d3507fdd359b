"""What the simulated job API can answer, sense and nonsense."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    body_missing: int = 0
    """Bytes of the announced body that are never sent: the connection ends instead."""
    held: threading.Event | None = None
    """The answer waits for this event (or for the end of the simulated Sume)."""

    @classmethod
    def data(cls, data: Any, *, held: threading.Event | None = None) -> Self:
        """Answer as Sume does when it can."""
        return cls(body=json.dumps({"data": data}).encode(), held=held)

    @classmethod
    def error(cls, status: int, code: str, *, retry_after: str | None = None) -> Self:
        """Answer as Sume does when it cannot; `retry_after` is sent as it is."""
        retryable = status in {408, 429} or status >= 500  # noqa: PLR2004 - HTTP's own numbers
        body = {"error": {"code": code, "message": f"the sandbox says {code}", "retryable": retryable}}
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return cls(status, json.dumps(body).encode(), headers=headers)

    @classmethod
    def html(cls, status: int = 200) -> Self:
        """Answer with the page of some proxy."""
        return cls(status, b"<!doctype html><title>Please wait</title>", "text/html; charset=utf-8")

    @classmethod
    def truncated(cls) -> Self:
        """Answer with JSON that ends in its middle, though the announced length is right."""
        return cls(200, b'{"data": {"request_id": "job_')

    @classmethod
    def broken_off(cls) -> Self:
        """Answer with less than was announced."""
        return cls(200, b'{"data": {}}', body_missing=6)
