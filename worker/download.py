"""The way of one file from its URL into a partial: streamed, resumed, verified."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from shared.event import Artifact
from shared.storage.storage import Check, Partial
from worker.addresses import HostRules
from worker.failures import CutError, DownloadError, ExpiredUrlError, IntegrityError
from worker.patience import Clock, Patience
from worker.promise import Promise
from worker.request import Admit, Answer, Requester, admit_all
from worker.resolver import Resolver, system_resolver
from worker.transfer import OK, PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE, Transfer

CHUNK = 256 * 1024
EXPIRED = frozenset({401, 403, 404, 410})
BUSY = frozenset({408, 425, 429})
SERVER_ERRORS = range(500, 600)
MOST_RESUMES_IN_VAIN = 3
"""Connections in a row that bring no new byte before the attempt fails."""
GOOD_PROGRESS = 1024 * 1024
"""Bytes after which a cut counts as the first one again; so does a hundredth of the file."""
LONGEST_PAUSE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Verified:
    """A whole file that keeps every promise, in a partial that may be published."""

    bytes: int
    sha256: str
    content_type: str | None
    """As the host named it."""
    hosts: tuple[str, ...]
    """Every host it came through."""


def tls_context() -> ssl.SSLContext:
    """Return the TLS settings of every download: the system's certificates (or SSL_CERT_FILE), host names checked."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # set by default before Python 3.11.4; see Connection.secure
    return context


@dataclass(frozen=True, slots=True)
class Downloader:
    """Downloads artifacts; may be shared by threads."""

    rules: HostRules
    stall: timedelta
    """No byte for so long ends the attempt."""
    max_bytes: int
    resolver: Resolver = system_resolver
    tls: ssl.SSLContext = field(default_factory=tls_context)
    pause: timedelta = timedelta(milliseconds=50)
    """Wait before the first resume of a file; it doubles up to a second while cuts come without good progress."""
    clock: Clock = time.monotonic

    def download(self, artifact: Artifact, into: Partial, *, check: Check, admit: Admit = admit_all) -> Verified:
        """Fill a partial with one artifact, whole and verified, using memory for one chunk.

        Every wait notices within half a second that `check` raises, which also ends transfers too slow for the
        job's deadline. Raises PermanentError (url_not_allowed, too_large), ParkedError (host_not_allowed),
        ExpiredUrlError, DownloadError (download_failed), IntegrityError (integrity_failed), storage_failed, and what
        `admit` raises.
        """
        transfer = Transfer(into, Promise.of(artifact, max_bytes=self.max_bytes))
        cuts = Cuts(self.pause)
        patience = Patience(check, self.stall, self.clock)
        requester = Requester(self.rules, self.resolver, self.tls, admit)
        while True:
            before, wanted = transfer.received, transfer.range_headers()
            try:
                with requester.get(artifact.url, headers=wanted, patience=patience) as answer:
                    refuse_status(answer, resuming=bool(wanted))
                    with page_first(transfer, answer):
                        if not transfer.accept(answer):
                            continue
                        receive(answer, transfer)
                        return verified(answer, transfer)
            except CutError as cut:
                transfer.give_up_unless_continuable(cut)
                patience.pause(cuts.next_pause(cut, before=before, transfer=transfer))


@dataclass(slots=True)
class Cuts:
    """How often the transfer of one file was cut, and how patient that leaves us."""

    pause: timedelta
    in_vain: int = 0
    without_good_progress: int = 0

    def next_pause(self, cut: CutError, *, before: int, transfer: Transfer) -> float:
        """Return the seconds to wait before resuming; raise the cut when nothing arrived or resuming is in vain."""
        new = transfer.received - before
        self.in_vain = 0 if new > 0 else self.in_vain + 1
        good = new >= min(GOOD_PROGRESS, (transfer.total or 100 * GOOD_PROGRESS) / 100)
        self.without_good_progress = 0 if good else self.without_good_progress + 1
        if not transfer.received or self.in_vain == MOST_RESUMES_IN_VAIN:
            raise cut
        longer: timedelta = self.pause * 2 ** min(self.without_good_progress, 10)
        return min(longer, LONGEST_PAUSE).total_seconds()


def refuse_status(answer: Answer, *, resuming: bool) -> None:
    """Raise for every status but those that carry the file, or that answer a request for the rest of it."""
    status, name = answer.status, answer.target.name
    if status == OK or (resuming and status in {PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE}):
        return
    if status in EXPIRED:
        raise ExpiredUrlError(f"{name}: answered {status}")
    if status in SERVER_ERRORS or status in BUSY:
        raise CutError(f"{name}: answered {status}", host=answer.target.authority)
    raise DownloadError(f"{name}: answered {status}, which is no file")


@contextmanager
def page_first(transfer: Transfer, answer: Answer) -> Iterator[None]:
    """Call a page a page, whatever else is wrong with it: its length and SHA-256 say nothing about the file."""
    try:
        yield
    except IntegrityError:
        transfer.promise.refuse_page(transfer.head, content_type=transfer.content_type, target=answer.target)
        raise


def receive(answer: Answer, transfer: Transfer) -> None:
    """Read the body to its end; CutError when that comes before the announced one."""
    name = answer.target.name
    while chunk := answer.response.read1(CHUNK):
        transfer.append(chunk, name=name)
    expected = transfer.total if transfer.total is not None else expected_end(answer, transfer)
    if expected is not None and transfer.received < expected:
        message = f"{name}: cut after {transfer.received} of {expected} bytes"
        raise CutError(message, host=answer.target.authority)


def expected_end(answer: Answer, transfer: Transfer) -> int | None:
    """Return the stated size where nothing but the end of the connection says that the body is whole."""
    return None if answer.response.chunked else transfer.promise.size


def verified(answer: Answer, transfer: Transfer) -> Verified:
    """Compare what arrived with what was promised."""
    promise, name = transfer.promise, answer.target.name
    if transfer.total is not None and transfer.received != transfer.total:
        raise IntegrityError(f"{name}: {transfer.received} bytes where the host announced {transfer.total}")
    if not transfer.received:
        raise DownloadError(f"{name}: the file is empty", host=answer.target.authority)
    promise.verify(size=transfer.received, sha256=transfer.sha256, name=name)
    promise.refuse_page(transfer.head, content_type=transfer.content_type, target=answer.target)
    return Verified(transfer.received, transfer.sha256, transfer.content_type, answer.hosts)
