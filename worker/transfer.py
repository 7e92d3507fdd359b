"""What has arrived of one file so far, and where the next answer continues."""

import hashlib
import re
from dataclasses import dataclass, field

from shared.storage.storage import Partial
from worker.failures import CutError, DownloadError, IntegrityError
from worker.promise import HEAD, Promise, media_type
from worker.request import Answer

OK, PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 200, 206, 416
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]*"')
HTTP_DATE = re.compile(r"[A-Za-z0-9,: +-]{1,64}")
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/(?:([0-9]{1,19})|\*)")
CONTENT_LENGTH = re.compile(r"[0-9]{1,19}")
MOST_RESTARTS = 2
"""How often one attempt begins a file anew, so that a host that cannot resume costs at most three times its size."""


@dataclass(slots=True)
class Transfer:
    """The bytes of one file, hashed as they come."""

    into: Partial
    promise: Promise
    received: int = 0
    total: int | None = None
    """The size the host announced for the whole file."""
    content_type: str | None = None
    validator: str | None = None
    """What tells this content from another under the same URL; without one nothing is resumed."""
    head: bytes = b""
    restarts: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        """The SHA-256 of what has arrived."""
        return self._digest.hexdigest()

    def range_headers(self) -> dict[str, str]:
        """Return the headers that ask for the rest, and for all of it when the content has changed."""
        if not self.received or self.validator is None:
            return {}
        return {"Range": f"bytes={self.received}-", "If-Range": self.validator}

    def accept(self, answer: Answer) -> bool:
        """Get ready for an answer's body; False when it is of no use and the file must be asked for anew."""
        encoding = answer.header("Content-Encoding")
        if encoding and encoding.lower() != "identity":
            raise IntegrityError(
                f"{answer.target.name}: came with Content-Encoding {encoding[:20]!r}, which nobody asked for"
            )
        if answer.status == OK:
            if self.received:
                self._restart(answer)
            self._begin(answer)
            return True
        if answer.status == PARTIAL_CONTENT and self._continues(answer):
            return True
        self._restart(answer)
        return False

    def append(self, chunk: bytes, *, name: str) -> None:
        """Take the next bytes, unless they are more than may come."""
        self.promise.allow(self.received + len(chunk), name=name)
        self.into.write(chunk)
        self._digest.update(chunk)
        self.received += len(chunk)
        if len(self.head) < HEAD:
            self.head += chunk[: HEAD - len(self.head)]

    def give_up_unless_continuable(self, cut: CutError) -> None:
        """Raise a cut that could only be followed by a beginning too many."""
        if self.validator is None and self.restarts == MOST_RESTARTS:
            raise cut

    def _begin(self, answer: Answer) -> None:
        self.total = length_of(answer)
        self.validator = validator_of(answer)
        self.content_type = media_type(answer.header("Content-Type"))
        if self.total:  # an empty file is refused when it has "arrived", as one of unknown length is
            self.promise.fit(self.total, name=answer.target.name)

    def _continues(self, answer: Answer) -> bool:
        match = CONTENT_RANGE.fullmatch(answer.header("Content-Range") or "")
        if match is None or int(match[1]) != self.received:
            return False
        changed = validator_of(answer) not in {None, self.validator}
        total = int(match[3]) if match[3] else self.total
        if changed or (self.total is not None and total != self.total):
            return False
        self.total = total
        return True

    def _restart(self, answer: Answer) -> None:
        if self.restarts == MOST_RESTARTS:
            message = f"{answer.target.name}: was cut again and again, and the host does not resume"
            raise DownloadError(message, host=answer.target.authority)
        self.restarts += 1
        self.into.restart()
        self.received, self.total, self.validator, self.head = 0, None, None, b""
        self._digest = hashlib.sha256()


def length_of(answer: Answer) -> int | None:
    """Return the Content-Length; None where the body is framed otherwise."""
    coding, length = answer.header("Transfer-Encoding"), answer.header("Content-Length")
    if coding is not None:
        if coding.lower() != "chunked":
            raise IntegrityError(f"{answer.target.name}: came with Transfer-Encoding {coding[:20]!r}")
        return None
    if length is None:
        return None
    if CONTENT_LENGTH.fullmatch(length) is None:
        raise IntegrityError(f"{answer.target.name}: its Content-Length is not a number")
    return int(length)


def validator_of(answer: Answer) -> str | None:
    """Return the strong ETag, else Last-Modified, in a form that may be sent back."""
    etag, modified = answer.header("ETag"), answer.header("Last-Modified")
    if etag is not None:
        return etag if STRONG_ETAG.fullmatch(etag) else None
    return modified if modified is not None and HTTP_DATE.fullmatch(modified) else None
