"""Which URLs may be fetched: the host list and the address rules (CONTRACT section 6)."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Self

from shared.claims.states import Reason
from shared.errors import ParkedError, SettingsError
from worker.target import Target, not_allowed, parse

NAT64 = IPv6Network("64:ff9b::/96")
"""How an IPv6-only network reaches IPv4: the last 32 bits are the address that counts (RFC 6052)."""
REFUSED = (
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of a local network
    IPv6Network("2002::/16"),  # 6to4, any IPv4 address inside
    IPv6Network("2001::/32"),  # Teredo, the same
    IPv6Network("::/96"),  # IPv4-compatible, the same
    IPv6Network("fec0::/10"),  # site-local
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
)
"""What `is_global` lets through in some Python release although it leads, or may lead, to a private network."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """ARTIFACT_HOSTS and ARTIFACT_ALLOW_INSECURE, as rules."""

    hosts: tuple[tuple[str, str], ...]
    """Host (or `*.` and a domain) and port as text, empty for any."""
    allow_insecure: bool

    @classmethod
    def of(cls, hosts: Iterable[str], *, allow_insecure: bool) -> Self:
        """Read the entries of ARTIFACT_HOSTS, whose form the settings have checked."""
        return cls(tuple(entry_of(entry) for entry in hosts), allow_insecure)

    def admit(self, url: str) -> Target:
        """Return where a URL leads; its host's addresses are still to be checked (`check_addresses`).

        Raises PermanentError (url_not_allowed) for what is no absolute http(s) URL or names a private address, and
        ParkedError (host_not_allowed) for a host that is not listed.
        """
        target = parse(url)
        if target.scheme != "https" and not self.allow_insecure:
            raise not_allowed(f"{target.name}: http is allowed only with ARTIFACT_ALLOW_INSECURE")
        if (literal := address_of(target.host)) is not None:
            self.check_addresses(target, [literal])
        elif is_localhost(target.host) and not self.allow_insecure:
            raise not_allowed(f"{target.authority} is this machine itself")
        if not any(lists(entry, target) for entry in self.hosts):
            message = f"{target.authority} is not listed in ARTIFACT_HOSTS"
            raise ParkedError(Reason.HOST_NOT_ALLOWED, message, host=target.authority)
        return target

    def check_addresses(self, target: Target, addresses: Iterable[str]) -> None:
        """Raise PermanentError (url_not_allowed) when any address of a host is not a public one."""
        for address in addresses:
            if not self.allow_insecure and not is_public(address):
                raise not_allowed(f"{target.authority} leads to {address}, which is not a public address")


def address_of(host: str) -> str | None:
    """Return the host when it is an address already, None when it is a name."""
    try:
        return str(ip_address(host))
    except ValueError:
        return None


def is_localhost(host: str) -> bool:
    """Whether a name is this machine whatever a resolver says (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def entry_of(entry: str) -> tuple[str, str]:
    """Split an entry of ARTIFACT_HOSTS into host and port; an IPv6 address takes the spelling hosts have here."""
    host, colon, port = entry.rpartition(":")
    if not colon or not port.isdigit():
        host, port = entry, ""
    if not host.startswith("["):
        return host, port
    try:
        return str(IPv6Address(host[1:-1])), port
    except AddressValueError as error:
        raise SettingsError("ARTIFACT_HOSTS", f"{host} is not an IPv6 address") from error


def lists(entry: tuple[str, str], target: Target) -> bool:
    """Whether an entry lists a target; `*.` lists subdomains of any depth and not the domain itself."""
    host, port = entry
    if port and int(port) != target.port:
        return False
    return target.host.endswith(host[1:]) if host.startswith("*.") else target.host == host


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet; an IPv4 address inside an IPv6 one is judged for itself."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip in NAT64:
            ip = IPv4Address(int(ip) & 0xFFFFFFFF)
    refused = any(ip.version == network.version and ip in network for network in REFUSED)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not refused
