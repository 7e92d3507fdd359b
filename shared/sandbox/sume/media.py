"""The artifact hosting of the simulated Sume: files behind signed URLs that can be told to misbehave."""

import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from shared.sandbox.sume.answers import Answer
from shared.sandbox.sume.content import Content
from shared.sandbox.sume.listener import Exchange

RANGE = re.compile(r"bytes=([0-9]+)-([0-9]*)")
MOMENT = timedelta(milliseconds=10)


@dataclass(slots=True)
class File:
    """One hosted file. Every field may be changed at any time and counts from the next request on."""

    path: str
    """As it stands in the URL, with a leading slash."""
    content: Content
    origin: str
    content_type: str = "image/png"
    """As promised in the job's list, and as served unless `served_type` says otherwise."""
    type: str = "image"
    filename: str | None = None
    stated: Mapping[str, Any] = field(default_factory=dict)
    """What the job's list says instead of the truth: `{"sha256": "00…"}`; None leaves the key out."""
    served_type: str | None = None
    announced_length: int | None = None
    """Content-Length instead of the truth."""
    announce_length: bool = True
    """False: no Content-Length, the end of the connection is the end of the file."""
    ranges: bool = True
    """False: Range is ignored, and there is neither Accept-Ranges nor ETag."""
    status: int | None = None
    """Answer with this status and no file, `status_times` times (None: always)."""
    status_times: int | None = None
    redirect_to: str | None = None
    cut_after: int | None = None
    """Hang up after so many bytes of an answer, `cut_times` times (None: always)."""
    cut_times: int | None = None
    stall_after: int | None = None
    """Send so many bytes of an answer, then nothing until `release`."""
    drip_bytes: int | None = None
    """Send so many bytes, wait `drip_wait`, and so on."""
    drip_wait: timedelta = MOMENT
    stalled: threading.Event = field(default_factory=threading.Event)
    """Set when an answer has come to `stall_after`: the moment to kill a worker."""
    expired_status: int = HTTPStatus.FORBIDDEN
    """The answer to a URL that `expire` ended, or that is spelled otherwise than it was given."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)
    _etag: str = field(default_factory=lambda: secrets.token_hex(8))
    _signatures: set[str] = field(default_factory=set)

    def url(self) -> str:
        """Return the URL with a fresh signature; the ones given before stay valid until `expire`.

        The query holds escapes of the kind that clients like to rewrite, and any other spelling is refused.
        """
        signature = f"X-Expires=86400&X-Credential=sandbox%2fmedia&X-Signature={secrets.token_hex(32)}%2B~"
        self._signatures.add(signature)
        return f"{self.origin}{self.path}?{signature}"

    def expire(self) -> None:
        """End every URL given so far."""
        self._signatures.clear()

    def release(self) -> None:
        """Let stalled answers go on, and later ones not stall."""
        self.stall_after = None
        self._released.set()

    def replace(self, content: Content) -> None:
        """Put another file under the same URL, with another ETag."""
        self.content = content
        self._etag = secrets.token_hex(8)

    def entry(self) -> dict[str, Any]:
        """Return what a job's artifact list says about this file, with a fresh URL."""
        facts: dict[str, Callable[[], Any]] = {
            "url": self.url,
            "type": lambda: self.type,
            "content_type": lambda: self.content_type,
            "filename": lambda: self.filename,
            "size_bytes": lambda: self.content.size,
            "sha256": lambda: self.content.sha256,
        }
        entry = {name: self.stated[name] if name in self.stated else fact() for name, fact in facts.items()}
        return {name: value for name, value in entry.items() if value is not None}

    def serve(self, exchange: Exchange) -> None:
        """Answer one request as the fields say."""
        if exchange.request.query not in self._signatures:
            exchange.send(Answer(self.expired_status, b"<Error><Code>AccessDenied</Code></Error>", "application/xml"))
        elif self.status is not None and self._spend("status_times"):
            exchange.send(Answer.error(self.status, "media_error"))
        elif self.redirect_to is not None:
            exchange.send(Answer(HTTPStatus.FOUND, headers={"Location": self.redirect_to}))
        else:
            self._send_file(exchange)

    def _send_file(self, exchange: Exchange) -> None:
        start, end = self._wanted(exchange.request.headers)
        size = self.content.size
        if start >= size > 0:
            headers = {"Content-Range": f"bytes */{size}"}
            exchange.send(Answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=headers))
            return
        partial = (start, end) != (0, size)
        headers = {"Content-Type": self.served_type or self.content_type}
        if self.ranges:
            headers |= {"Accept-Ranges": "bytes", "ETag": f'"{self._etag}"'}
        if partial:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        length = end - start if self.announced_length is None else self.announced_length
        headers |= {"Content-Length": str(length)} if self.announce_length else {"Connection": "close"}
        exchange.start(HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK, headers)
        if length != end - start or not self.announce_length:
            exchange.hang_up()
        self._send_body(exchange, start, end)

    def _send_body(self, exchange: Exchange, start: int, end: int) -> None:
        cut = self.cut_after
        if cut is not None and cut < end - start and self._spend("cut_times"):
            end = start + cut
            exchange.hang_up()
        stall_at = None if self.stall_after is None else start + self.stall_after
        if stall_at is not None and stall_at < end:
            self._send_range(exchange, start, stall_at)
            self.stalled.set()
            exchange.wait_for(self._released)
            start = stall_at
        self._send_range(exchange, start, end)

    def _send_range(self, exchange: Exchange, start: int, end: int) -> None:
        for piece in self._pieces(start, end):
            if exchange.closing.is_set():
                return
            exchange.write(piece)
            if self.drip_bytes is not None:
                exchange.closing.wait(self.drip_wait.total_seconds())

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        for chunk in self.content.chunks(start, end):
            step = self.drip_bytes or len(chunk)
            yield from (chunk[at : at + step] for at in range(0, len(chunk), step))

    def _wanted(self, headers: Mapping[str, str]) -> tuple[int, int]:
        """Return start and end of what a request asks for; all of it where a range does not count."""
        size = self.content.size
        match = RANGE.fullmatch(headers.get("range", ""))
        if not match or not size or not self.ranges or headers.get("if-range", f'"{self._etag}"') != f'"{self._etag}"':
            return 0, size
        return int(match[1]), min(int(match[2]) + 1, size) if match[2] else size

    def _spend(self, times: str) -> bool:
        """Whether a misbehaviour still has a turn, taking it."""
        with self._lock:
            left: int | None = getattr(self, times)
            if left is not None and left > 0:
                setattr(self, times, left - 1)
        return left is None or left > 0
