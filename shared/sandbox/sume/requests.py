"""The record of what the simulated Sume was asked."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from shared.sandbox.wheels import SandboxError

SOON = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request as it came; path and query are the raw bytes of the request line."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""


class RequestLog:
    """Every request of one listener in order; safe to read while requests come."""

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._changed = threading.Condition()

    def add(self, request: Request) -> None:
        """Record a request before it is answered."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()

    def all(self, path: str | None = None, *, method: str | None = None) -> list[Request]:
        """Return the requests so far, of one path or method alone where given."""
        with self._changed:
            return self._matching(path, method)

    def count(self, path: str | None = None, *, method: str | None = None) -> int:
        """Return how many there were."""
        return len(self.all(path, method=method))

    def wait_for(self, path: str, *, times: int = 1, within: timedelta = SOON) -> None:
        """Return when the path was asked that often; raise SandboxError when that does not happen in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._matching(path, None)) >= times, within.total_seconds()):
                raise SandboxError(f"{path} was asked {len(self._matching(path, None))} times, not {times}")

    def clear(self) -> None:
        """Forget them."""
        with self._changed:
            self._requests.clear()

    def _matching(self, path: str | None, method: str | None) -> list[Request]:
        return [r for r in self._requests if path in {None, r.path} and method in {None, r.method}]
