"""What a storage promises: a file appears under its final name whole, durable and once, or not at all (I8).

Paths are relative to the storage root and use `/`. Whatever the system underneath refuses (full, read-only, away) is
raised as RetryableError with reason storage_failed.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

from shared.event import StoredArtifact

Check: TypeAlias = Callable[[], None]
"""Called often during long work, from any thread; raises when the work must stop."""

LiveTokens: TypeAlias = Callable[[Collection[UUID]], Collection[UUID]]
"""Returns those of the given lease tokens that are the current token of a running job."""


def never_stop() -> None:
    """Be the Check of work that nobody ends early."""


@dataclass(frozen=True, slots=True)
class Found:
    """What lies under a final name now."""

    bytes: int
    sha256: str
    identity: str
    """Tells this very file from another one that took its place later."""


class Partial(Protocol):
    """A file being written, seen by nobody; it belongs to one lease and one thread."""

    def write(self, data: bytes) -> None:
        """Append all of the data."""
        ...

    def restart(self) -> None:
        """Forget what was written."""
        ...

    def discard(self) -> None:
        """Delete it if it was not published; never raises, for it follows other errors (the sweep comes later)."""
        ...


class Storage(Protocol):
    """Where the files of jobs lie."""

    @property
    def place(self) -> str:
        """Where that is, for people."""
        ...

    def start(self, job_id: str, *, token: UUID, name: str) -> Partial:
        """Begin a file for the lease of `token`, which must be committed already (`sweep_partials` relies on it)."""
        ...

    def publish(self, partial: Partial, path: str, *, before_manifest: bool = False) -> bool:
        """Give a whole and verified partial its final name, durably; a published file is never replaced.

        False when a file stands there already: it is left alone, and so is the partial. With `before_manifest` it is
        the `replace` of the manifest beside it, or `settle`, to follow at once, that makes its name durable.
        """
        ...

    def replace(self, partial: Partial, path: str) -> None:
        """Give a partial its final name in place of what is there, atomically: for the manifest alone."""
        ...

    def settle(self, path: str) -> None:
        """Make the name of a published file durable, and every name beside it."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return a small published file (the manifest), or None where there is none."""
        ...

    def find(self, path: str, *, check: Check) -> Found | None:
        """Return what is published under a path, read wholly and durable by now; None where nothing is."""
        ...

    def set_aside(self, path: str, found: Found) -> None:
        """Move a damaged file out of its final name, keeping it for a person to see, unless another took its place."""
        ...

    def find_problem(self, artifact: StoredArtifact, *, check: Check = never_stop) -> str | None:
        """Return how a stored file differs from its record (missing, size, SHA-256), None when it is whole."""
        ...

    def sweep_partials(self, live: LiveTokens) -> int:
        """Delete the partials of every lease that has ended; return of how many leases.

        Asks `live` about the tokens it found: a token is committed before its first partial is made and never
        given again, so one that is not current *after* it was found belongs to no worker that may still publish.
        Any number may sweep at once.
        """
        ...

    def free_bytes(self) -> int:
        """Return how many bytes can still be written."""
        ...

    def read_id(self) -> str | None:
        """Return what tells this storage from others; None before `make_id`, and where nothing is mounted."""
        ...

    def make_id(self) -> str:
        """Give the storage an id unless it has one; return the one it has. Any number may call at once."""
        ...

    def is_fresh(self) -> bool:
        """Whether nobody can have worked with this storage: there is nothing but, at most, its id."""
        ...

    def probe(self) -> None:
        """Return when files can be published now; raise RetryableError with the reason when not."""
        ...
