"""What Sume promised about a file, and whether the bytes that came keep it."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self

from shared.claims.states import Reason
from shared.errors import PermanentError
from shared.event import Artifact
from worker.failures import DownloadError, IntegrityError
from worker.filenames import file_name
from worker.media_types import MEDIA_KINDS, kind_of_suffix
from worker.target import Target

HEAD = 512
"""Bytes from the start of a file that tell a page from a medium."""
HTML = re.compile(rb"<(!doctype\s+html|html|head|body|title|script|meta)\b", re.IGNORECASE)
SVG = re.compile(rb"<svg\b", re.IGNORECASE)
JSON = re.compile(rb'(\{\s*["}]|\[\s*([\[{"\]0-9-]|true|false|null))')
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
PAGE_TYPES = re.compile(r"text/html|application/xhtml\+xml|application/([a-z0-9.+-]+\+)?json|text/json")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Promise:
    """What must hold of a file before it may be published."""

    size: int | None
    sha256: str | None
    media: bool
    """An image, video or audio was promised, so a page is an error that came with status 200."""
    max_bytes: int

    @classmethod
    def of(cls, artifact: Artifact, *, max_bytes: int) -> Self:
        """Read the promise out of what Sume announced; IntegrityError for a SHA-256 that none can match."""
        sha256 = artifact.sha256.strip().lower() if artifact.sha256 else None
        if sha256 is not None and SHA256.fullmatch(sha256) is None:
            raise IntegrityError(f"artifact {artifact.index}: the stated SHA-256 is not 64 hex digits")
        return cls(artifact.size_bytes, sha256, promises_media(artifact), max_bytes)

    def allow(self, size: int, *, name: str) -> None:
        """Stop a file as soon as it is known to be at least so large."""
        if size > self.max_bytes:
            raise PermanentError(f"{name}: larger than ARTIFACT_MAX_BYTES ({self.max_bytes})", reason=Reason.TOO_LARGE)
        if self.size is not None and size > self.size:
            raise IntegrityError(f"{name}: {size} bytes or more where {self.size} were stated")

    def fit(self, size: int, *, name: str) -> None:
        """Refuse a whole file, arrived or announced by its Content-Length, of another size than stated."""
        self.allow(size, name=name)
        if self.size is not None and size != self.size:
            raise IntegrityError(f"{name}: {size} bytes where {self.size} were stated")

    def verify(self, *, size: int, sha256: str, name: str) -> None:
        """Refuse a whole file that is empty, or of another size or SHA-256 than stated."""
        if size == 0:
            raise IntegrityError(f"{name}: the file is empty")
        self.fit(size, name=name)
        if self.sha256 is not None and sha256 != self.sha256:
            raise IntegrityError(f"{name}: the SHA-256 is not the stated one")

    def refuse_page(self, head: bytes, *, content_type: str | None, target: Target) -> None:
        """Refuse an HTML or JSON page in place of a medium, judged by its first bytes and its Content-Type.

        It is the host that fails then, as with a 5xx: a maintenance page that lasts for hours must kill no job.
        """
        if self.media and is_page(head, content_type=content_type):
            message = f"{target.name}: an HTML or JSON page where a medium was promised"
            raise DownloadError(message, host=target.authority)


def promises_media(artifact: Artifact) -> bool:
    """Whether an image, video or audio is promised: by its content type or type, or by its name without either."""
    content_type = media_type(artifact.content_type)
    if content_type and PAGE_TYPES.fullmatch(content_type):
        return False
    stated = {text.partition("/")[0] for text in (content_type, media_type(artifact.type)) if text}
    if not stated:
        return kind_of_suffix(PurePosixPath(file_name(artifact)).suffix) in MEDIA_KINDS
    return not stated.isdisjoint(MEDIA_KINDS)


def media_type(header: str | None) -> str | None:
    """Return a Content-Type without its parameters, in lower case; None where there is none."""
    return (header or "").partition(";")[0].strip().lower() or None


def is_page(head: bytes, *, content_type: str | None) -> bool:
    """Whether a file that starts so is an HTML or JSON page.

    An announced page that looks binary is a mislabelled medium; an SVG is text, and no page.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if BINARY.search(text):
        return False
    html, svg = HTML.search(text), SVG.search(text)
    if svg is not None and (html is None or svg.start() < html.start()):
        return False
    return bool(html or JSON.match(text) or PAGE_TYPES.fullmatch(content_type or ""))
