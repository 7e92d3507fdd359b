"""Tests of what goes out: the request, its redirects, and where they may lead."""

import socket
from collections.abc import Sequence

import pytest

from shared.errors import ParkedError, PermanentError
from shared.event import Artifact
from shared.storage.storage import never_stop
from tests.worker.downloads import PNG, MemoryPartial, downloader, fetch
from tests.worker.scripted_host import ScriptedHost, exactly, head, redirect, whole
from worker.addresses import HostRules
from worker.failures import DownloadError


def test_a_signed_url_goes_out_byte_for_byte() -> None:
    """Nothing in path or query is normalised, and the fragment stays here."""
    path = "/a%2Fb/../c{d}/~e.png?Signature=a%2fb+c/d==&Expires=%7E"
    with ScriptedHost([whole(PNG)]) as host:
        fetch(host, path=path + "#fragment")
    assert host.requests[0].raw.startswith(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{host.port}\r\n".encode())


def test_the_request_carries_nothing_of_ours() -> None:
    """No credentials, no cookie, and no encoding that we would have to undo."""
    with ScriptedHost([whole(PNG)]) as host:
        fetch(host)
    assert host.requests[0].headers == {
        "host": f"127.0.0.1:{host.port}",
        "user-agent": "sume-jobs",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
    }


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(status: int) -> None:
    """Any redirect leads to the file, its Location sent as it came."""
    with ScriptedHost([redirect("/b%2fc/../d?x=%7e", status=status), whole(PNG)]) as host:
        assert fetch(host).bytes == len(PNG)
    assert host.requests[1].target == "/b%2fc/../d?x=%7e"


@pytest.mark.parametrize(
    ("location", "target"),
    [("other.png", "/dir/other.png"), ("?x=1", "/dir/picture.png?x=1"), ("/caf\xc3\xa9", "/caf%C3%A9")],
)
def test_a_relative_location_is_relative_to_the_url(location: str, target: str) -> None:
    """A Location need not name the host."""
    with ScriptedHost([redirect(location), whole(PNG)]) as host:
        fetch(host, path="/dir/picture.png")
    assert host.requests[1].target == target


def test_five_redirects_are_followed_and_not_six() -> None:
    """A loop ends."""
    with ScriptedHost([*[redirect("/next")] * 5, whole(PNG)]) as host:
        assert fetch(host).bytes == len(PNG)
    with ScriptedHost([redirect("/loop")]) as host, pytest.raises(DownloadError, match="more than 5 redirects"):
        fetch(host)
    assert len(host.requests) == 6


@pytest.mark.parametrize(
    ("location", "error", "reason"),
    [
        ("https://evil.example/a.png?secret", ParkedError, "host_not_allowed"),
        ("//evil.example/a.png", ParkedError, "host_not_allowed"),
        ("file:///etc/passwd", PermanentError, "url_not_allowed"),
        ("http://user:secret@127.0.0.1/", PermanentError, "url_not_allowed"),
        ("ftp://127.0.0.1/a.png", PermanentError, "url_not_allowed"),
    ],
)
def test_each_hop_is_checked_like_the_first(location: str, error: type[Exception], reason: str) -> None:
    """A listed host cannot send us elsewhere."""
    with ScriptedHost([redirect(location)]) as host, pytest.raises(error) as caught:
        fetch(host)
    assert getattr(caught.value, "reason", None) == reason
    assert "secret" not in str(caught.value)


def test_a_redirect_without_a_location_is_no_file() -> None:
    """A 302 that leads nowhere is a failure of the host."""
    with ScriptedHost([whole(b"", status=302)]) as host, pytest.raises(DownloadError, match="302 without a Location"):
        fetch(host)


def artifact_at(host: ScriptedHost, name: str) -> Artifact:
    """An artifact whose host is a name."""
    return Artifact(0, f"http://{name}:{host.port}/picture.png")


def test_the_address_that_was_checked_is_the_address_that_is_connected() -> None:
    """The resolver is asked once a hop, so a second answer (DNS rebinding) cannot lead elsewhere."""
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.9"]

    rules = HostRules.of(("media.example",), allow_insecure=True)
    with ScriptedHost([whole(PNG)]) as host:
        under_test = downloader(rules=rules, resolver=rebinding)
        under_test.download(artifact_at(host, "media.example"), MemoryPartial(), check=never_stop)
    assert asked == ["media.example"]


def test_a_name_that_leads_to_a_private_address_is_not_connected() -> None:
    """One private address among public ones is enough, on the first hop as on each."""
    rules = HostRules.of(("media.example",), allow_insecure=False)
    under_test = downloader(rules=rules, resolver=lambda _host, _port: ["8.8.8.8", "127.0.0.1"])
    with ScriptedHost([whole(PNG)]) as host:
        artifact = Artifact(0, f"https://media.example:{host.port}/picture.png?secret")
        with pytest.raises(PermanentError) as caught:
            under_test.download(artifact, MemoryPartial(), check=never_stop)
    assert caught.value.reason == "url_not_allowed"
    assert str(caught.value) == f"media.example:{host.port} leads to 127.0.0.1, which is not a public address"
    assert host.requests == []


def test_the_next_address_is_tried() -> None:
    """A host with a dead address and a living one is reached."""
    rules = HostRules.of(("media.example",), allow_insecure=True)
    with ScriptedHost([whole(PNG)]) as host:
        under_test = downloader(rules=rules, resolver=lambda _host, _port: ["127.0.0.9", "::1", "127.0.0.1"])
        under_test.download(artifact_at(host, "media.example"), MemoryPartial(), check=never_stop)
    assert len(host.requests) == 1


def test_a_name_that_does_not_resolve_is_a_failure_of_the_world() -> None:
    """DNS may be back later."""

    def failing(_host: str, _port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    rules = HostRules.of(("media.example",), allow_insecure=True)
    with pytest.raises(DownloadError, match="Name or service not known"):
        downloader(rules=rules, resolver=failing).download(
            Artifact(0, "http://media.example/"), MemoryPartial(), check=never_stop
        )


def test_early_hints_are_passed_over() -> None:
    """Interim answers are not the answer."""
    hints = head(103, link="</a>; rel=preload") + head(100)
    with ScriptedHost([exactly(hints, head(200, content_length=len(PNG)), PNG)]) as host:
        assert fetch(host).bytes == len(PNG)
