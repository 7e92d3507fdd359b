"""Tests of downloads over TLS, with a throwaway certificate for `media.example`."""

import ssl
from pathlib import Path

import pytest

from shared.errors import PermanentError
from shared.event import Artifact
from shared.storage.storage import never_stop
from tests.worker.downloads import PNG, MemoryPartial, downloader
from tests.worker.scripted_host import Answerer, ScriptedHost, exactly, head, redirect, whole
from worker.addresses import HostRules
from worker.download import Downloader, Verified, tls_context
from worker.failures import DownloadError

CERTIFICATES = Path(__file__).parent / "certificates"
NAMES = ("media.example", "other.example")


def secure_host(*answers: Answerer, names: list[str | None] | None = None) -> ScriptedHost:
    """A host with the certificate of `media.example`; `names` collects what clients call it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "media.example.pem")
    if names is not None:
        context.sni_callback = lambda _socket, name, _context: names.append(name)
    return ScriptedHost(answers, tls=context)


def trusting() -> Downloader:
    """A downloader that trusts the throwaway authority and finds every host on this machine."""
    context = tls_context()
    context.load_verify_locations(CERTIFICATES / "authority.pem")
    rules = HostRules.of(NAMES, allow_insecure=True)
    return downloader(rules=rules, tls=context, resolver=lambda _host, _port: ["127.0.0.1"])


def fetch(host: ScriptedHost, under_test: Downloader, *, name: str = "media.example") -> Verified:
    """Download from the host under a name."""
    artifact = Artifact(0, f"https://{name}:{host.port}/a.png")
    return under_test.download(artifact, MemoryPartial(), check=never_stop)


def test_the_name_is_verified_though_an_address_is_connected() -> None:
    """SNI, Host and certificate are those of the URL's host, not of its address."""
    names: list[str | None] = []
    with secure_host(whole(PNG), names=names) as host:
        assert fetch(host, trusting(), name="MEDIA.example.").bytes == len(PNG)
    assert names == ["media.example"]
    assert host.requests[0].headers["host"] == f"media.example:{host.port}"


def test_a_certificate_of_another_host_is_refused() -> None:
    """Whoever answers at the address must be the host of the URL."""
    with secure_host(whole(PNG)) as host, pytest.raises(DownloadError, match="certificate refused: Hostname mismatch"):
        fetch(host, trusting(), name="other.example")
    assert host.requests == []


def test_an_unknown_authority_is_refused() -> None:
    """Only the system's authorities are trusted, also where http is allowed."""
    rules = HostRules.of(NAMES, allow_insecure=True)
    under_test = downloader(rules=rules, resolver=lambda _host, _port: ["127.0.0.1"])
    with secure_host(whole(PNG)) as host, pytest.raises(DownloadError, match="certificate refused"):
        fetch(host, under_test)


def test_a_host_that_does_not_speak_tls_is_a_failure_of_the_host() -> None:
    """Garbage in the handshake is translated like any other failure."""
    with ScriptedHost([whole(PNG)]) as host, pytest.raises(DownloadError):
        fetch(host, trusting())


def test_an_end_that_tls_did_not_announce_is_a_cut() -> None:
    """Where only the end of the connection ends the body, an attacker cannot shorten the file."""
    with secure_host(exactly(head(200), PNG)) as host, pytest.raises(DownloadError):
        fetch(host, trusting())


def test_a_redirect_to_http_is_followed_only_where_http_is_allowed() -> None:
    """A secure host cannot send us to an insecure one, unless the setting allows it."""
    with ScriptedHost([whole(PNG)]) as plain:
        location = f"http://media.example:{plain.port}/a.png"
        with secure_host(redirect(location)) as host:
            assert fetch(host, trusting()).bytes == len(PNG)
    with pytest.raises(PermanentError, match="http is allowed only"):  # what each hop is asked
        HostRules.of(NAMES, allow_insecure=False).admit(location)
