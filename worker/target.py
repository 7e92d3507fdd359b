"""A URL taken apart without changing what is sent."""

import re
import socket
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote

from shared.claims.states import Reason
from shared.errors import PermanentError

URL = re.compile(r"(?i:(https?))://([^/?#]*)([^#]*)(?:#.*)?", re.DOTALL)
AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?")
NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")
LAST_LABEL_OF_AN_ADDRESS = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
PORTS = {"http": 80, "https": 443}
LONGEST_NAME = 200
"""Characters of host and path that an error text shows."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was parsed strictly: what is checked here is what is connected and sent."""

    scheme: str
    host: str
    """Lower-case ASCII or an address without brackets, without a trailing dot."""
    port: int
    request_target: str
    """Path and query as they stand on the request line, byte for byte as given."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def name(self) -> str:
        """Host and path, for errors and logs: never the query, which may be signed (I9)."""
        return (self.authority + self.request_target.partition("?")[0])[:LONGEST_NAME]


def parse(url: str) -> Target:
    """Take a URL apart without changing what is sent; PermanentError (url_not_allowed) for any that is ambiguous.

    What cannot stand on a request line (white space, non-ASCII) is percent-encoded as UTF-8, as browsers do.
    """
    if CONTROLS.search(url):
        raise not_allowed("the URL holds control characters")
    if (match := URL.fullmatch(url)) is None:
        raise not_allowed("the URL is not an absolute http or https URL")
    scheme, authority, rest = match[1].lower(), match[2], match[3]
    if "@" in authority:
        raise not_allowed("the URL holds a user name or password")
    if (parts := AUTHORITY.fullmatch(authority)) is None:
        raise not_allowed("the URL's host cannot be read")
    host, port = host_of(parts[1]), int(parts[2] or PORTS[scheme])
    if not 0 < port < 2**16:
        raise not_allowed("the URL's port is out of range")
    try:
        encoded = quote(rest, safe=PRINTABLE)
    except UnicodeEncodeError as error:
        raise not_allowed("the URL is not text") from error
    return Target(scheme, host, port, encoded if encoded.startswith("/") else f"/{encoded}")


def host_of(text: str) -> str:
    """Return a host in the one spelling that is compared, resolved and sent."""
    try:
        if text.startswith("["):
            return str(IPv6Address(text[1:-1].replace("%", " ")))  # a zone is refused: it is this machine's own affair
        host = (text if text.isascii() else text.encode("idna").decode("ascii")).lower().removesuffix(".")
    except (AddressValueError, UnicodeError) as error:
        raise not_allowed("the URL's host cannot be read") from error
    if NAME.fullmatch(host) is None:
        raise not_allowed("the URL's host cannot be read")
    if LAST_LABEL_OF_AN_ADDRESS.fullmatch(host.rpartition(".")[2]):
        return number_of(host)
    return host


def number_of(host: str) -> str:
    """Return the address that resolvers read in `127.1`, `0x7f000001` or `2130706433`."""
    try:
        return str(IPv4Address(socket.inet_aton(host)))
    except OSError as error:
        raise not_allowed("the URL's host cannot be read") from error


def not_allowed(problem: str) -> PermanentError:
    """Say why a URL can never be fetched."""
    return PermanentError(problem, reason=Reason.URL_NOT_ALLOWED)
