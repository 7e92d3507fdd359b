"""One GET of an artifact through its redirects, each hop checked like the first."""

import http.client
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import quote, urljoin

from worker.addresses import HostRules
from worker.connection import Connection, connect
from worker.failures import DownloadError, IntegrityError, network_failures
from worker.patience import Patience
from worker.resolver import Resolver, resolve
from worker.target import PRINTABLE, Target

MOST_REDIRECTS = 5
MOST_INTERIM_ANSWERS = 8
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SWITCHING_PROTOCOLS = 101
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

Admit: TypeAlias = Callable[[str], None]
"""Called with each host (and port) before it is asked; raises when it must not be."""


def admit_all(_host: str) -> None:
    """Be the Admit of a download that asks whatever host it is led to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer at the end of the redirects, its body still to be read."""

    target: Target
    response: http.client.HTTPResponse
    hosts: tuple[str, ...]
    """Every host on the way, in order."""

    @property
    def status(self) -> int:
        """The status code."""
        return self.response.status

    def header(self, name: str) -> str | None:
        """Return a header's value; IntegrityError when it is given twice with different values."""
        values = set(self.response.headers.get_all(name, ()))
        if len(values) > 1:
            raise IntegrityError(f"{self.target.name}: {name} was sent with different values")
        return values.pop().strip() if values else None


@dataclass(frozen=True, slots=True)
class Requester:
    """Sends GETs: with the target byte for byte as given, no cookie, no credentials, no proxy."""

    rules: HostRules
    resolver: Resolver
    tls: ssl.SSLContext
    admit: Admit

    @contextmanager
    def get(self, url: str, *, headers: Mapping[str, str], patience: Patience) -> Iterator[Answer]:
        """Yield the first answer that is no redirect; its body may be read inside the block.

        Whatever the network does while the block runs is raised as DownloadError, CutError among them.
        """
        hosts: tuple[str, ...] = ()
        for _ in range(MOST_REDIRECTS + 1):
            target = self.rules.admit(url)
            self.admit(target.authority)
            hosts += (target.authority,)
            with network_failures(target, stall=patience.stall):
                response = self._ask(target, headers=headers, patience=patience)
                answer = Answer(target, response, hosts)
                try:
                    if answer.status not in REDIRECTS:
                        yield answer
                        return
                    url = location_of(answer, base=url)
                finally:
                    answer.response.close()
        raise DownloadError(f"{target.name}: more than {MOST_REDIRECTS} redirects")

    def _ask(self, target: Target, *, headers: Mapping[str, str], patience: Patience) -> http.client.HTTPResponse:
        addresses = resolve(target.host, target.port, resolver=self.resolver, patience=patience)
        self.rules.check_addresses(target, addresses)
        connection = connect(target, addresses, tls=self.tls, patience=patience)
        try:
            connection.send(request_of(target, headers))
            return read_head(connection)
        except BaseException:
            connection.close()
            raise


def request_of(target: Target, headers: Mapping[str, str]) -> bytes:
    """Return the bytes of a request; urllib3's pool and httpx would rewrite the path of a signed URL."""
    fields = {
        "Host": target.authority,
        "User-Agent": "sume-jobs",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **headers,
    }
    lines = [f"GET {target.request_target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def read_head(connection: Connection) -> http.client.HTTPResponse:
    """Read status and headers, past interim answers such as 103 Early Hints."""
    response = http.client.HTTPResponse(cast("Any", connection), method="GET")
    try:
        response.begin()
        for _ in range(MOST_INTERIM_ANSWERS):
            if not 100 <= response.status < 200 or response.status == SWITCHING_PROTOCOLS:  # noqa: PLR2004 - 1xx
                break
            response.headers = cast("Any", None)  # begin() reads the next head of a response that has none
            response.begin()
    except BaseException:
        response.close()
        raise
    return response


def location_of(answer: Answer, *, base: str) -> str:
    """Return where a redirect leads, its bytes as they were sent wherever it names the whole path."""
    raw = answer.header("Location")
    if not raw:
        raise DownloadError(f"{answer.target.name}: answered {answer.status} without a Location")
    location = quote(raw.encode("latin-1"), safe=PRINTABLE)  # http.client reads headers as latin-1
    if ABSOLUTE.match(location):
        return location
    if location.startswith("//"):
        return f"{answer.target.scheme}:{location}"
    if location.startswith("/"):
        return f"{answer.target.scheme}://{answer.target.authority}{location}"
    return urljoin(base, location)
