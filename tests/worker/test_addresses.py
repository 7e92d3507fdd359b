"""Tests of which URLs may be fetched."""

import pytest

from shared.errors import ParkedError, PermanentError, SettingsError
from worker.addresses import HostRules, is_public

RULES = HostRules.of(("media.sume.com", "*.sume.com", "cdn.example:8443", "[2606:4700::1111]"), allow_insecure=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://media.sume.com/a.png",
        "https://media.sume.com:8443/a.png",
        "https://MEDIA.Sume.COM./a.png",
        "HTTPS://media.sume.com",
        "https://a.b.sume.com/a.png",
        "https://cdn.example:8443/a.png",
        "https://[2606:4700:0:0::1111]/a.png",
        "https://ｍedia.sume.com/a.png",  # noqa: RUF001 - full-width letters are another spelling of the same host
        "https://media.sume.com:/a.png",
    ],
)
def test_a_listed_host_is_admitted(url: str) -> None:
    """Case, a final dot, another spelling, any port where none is listed: the host is the same."""
    RULES.admit(url)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://sume.com/a.png", "sume.com"),  # `*.` lists subdomains only
        ("https://evilsume.com/a.png", "evilsume.com"),
        ("https://media.sume.com.evil.example/a.png", "media.sume.com.evil.example"),
        ("https://cdn.example/a.png", "cdn.example"),
        ("https://cdn.example:8444/a.png", "cdn.example:8444"),
        ("https://8.8.8.8/a.png", "8.8.8.8"),
        ("https://bücher.example/a.png", "xn--bcher-kva.example"),
        ("https://[2606:4700::1112]:444/a.png", "[2606:4700::1112]:444"),
    ],
)
def test_another_host_parks_the_job(url: str, named: str) -> None:
    """A host that is not listed waits for a person, who reads which one it is."""
    with pytest.raises(ParkedError) as caught:
        RULES.admit(url)
    assert caught.value.reason == "host_not_allowed"
    assert str(caught.value) == f"{named} is not listed in ARTIFACT_HOSTS"


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "/a.png",
        "a.png",
        "//media.sume.com/a.png",
        "https:/media.sume.com/a.png",
        "https:///a.png",
        "https://",
        "https://:443/a.png",
        "ftp://media.sume.com/a.png",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:image/png;base64,AAAA",
        "http://media.sume.com/a.png",
        " https://media.sume.com/a.png",
        "https://media.sume.com/a\r\nHost: evil",
        "https://media.sume.com/a\0.png",
        "https://media.sume.com\t/a.png",
        "https://user@media.sume.com/a.png",
        "https://user:password@media.sume.com/a.png",
        "https://media.sume.com@evil.example/a.png",
        "https://evil.example\\@media.sume.com/a.png",
        "https://media.sume.com\\.evil.example/a.png",
        "https://media.sume.com:99999/a.png",
        "https://media.sume.com:0/a.png",
        "https://media.sume.com:+443/a.png",
        "https://media.sume.com:443:443/a.png",
        "https://media..sume.com/a.png",
        "https://media%2esume.com/a.png",
        "https://media sume.com/a.png",
        f"https://{'a' * 64}.sume.com/a.png",
        "https://[::1/a.png",
        "https://[nonsense]/a.png",
        "https://[fe80::1%25eth0]/a.png",
        "https://media.sume.com/\ud800.png",
        "https://localhost/a.png",
        "https://a.localhost/a.png",
        "https://127.0.0.1/a.png",
        "https://127.1/a.png",
        "https://2130706433/a.png",
        "https://0x7f.0.0.1/a.png",
        "https://0177.0.0.1/a.png",
        "https://１２７.0.0.1/a.png",  # noqa: RUF001 - full-width digits are digits to a resolver
        "https://1.2.3.4.5/a.png",
        "https://[::1]/a.png",
        "https://[::ffff:127.0.0.1]/a.png",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/a.png",
    ],
)
def test_a_url_that_can_never_be_fetched_is_final(url: str) -> None:
    """No absolute https URL, an ambiguous one, or a private address written out: dead at once."""
    with pytest.raises(PermanentError) as caught:
        RULES.admit(url)
    assert caught.value.reason == "url_not_allowed"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/a.png", "http://localhost:1/a.png", "https://10.0.0.1/a.png"])
def test_the_insecure_setting_allows_http_and_private_addresses(url: str) -> None:
    """A sandbox on this machine can be used, as long as it is listed."""
    HostRules.of(("127.0.0.1:8000", "localhost", "10.0.0.1"), allow_insecure=True).admit(url)


def test_the_insecure_setting_does_not_open_the_list() -> None:
    """An unlisted host parks, even a private one."""
    rules = HostRules.of(("127.0.0.1:8000",), allow_insecure=True)
    for url in ("http://127.0.0.1:8001/a.png", "http://media.sume.com/a.png"):
        with pytest.raises(ParkedError):
            rules.admit(url)


@pytest.mark.parametrize(
    "given",
    ["/a%2Fb/../c{d}+e~f%2f?Signature=a%2Bb+c/d==&x=%7e", "/", "/?", "/a//b", "/a;b=c?d?e#", "/a'\"<>^`|[]\\b"],
)
def test_the_request_target_is_byte_for_byte_as_given(given: str) -> None:
    """Signed URLs go out as they were signed; a fragment is never sent."""
    assert RULES.admit(f"https://media.sume.com{given}").request_target == given.partition("#")[0]


@pytest.mark.parametrize(
    ("given", "sent"),
    [("?a=b", "/?a=b"), ("", "/"), ("/ä b", "/%C3%A4%20b"), ("/漢.png?q=é", "/%E6%BC%A2.png?q=%C3%A9")],
)
def test_what_no_request_line_can_hold_is_percent_encoded(given: str, sent: str) -> None:
    """An empty path is `/`; white space and non-ASCII are sent as browsers send them."""
    assert RULES.admit(f"https://media.sume.com{given}").request_target == sent


def test_a_user_name_is_named_as_the_problem() -> None:
    """The error says what is wrong without repeating the password."""
    with pytest.raises(PermanentError, match=r"^the URL holds a user name or password$"):
        RULES.admit("https://user:password@media.sume.com/a.png")


def test_errors_name_host_and_path_only() -> None:
    """A query may be a signature (I9)."""
    with pytest.raises(PermanentError) as caught:
        RULES.admit("http://media.sume.com/a.png?Signature=secret")
    assert "media.sume.com/a.png" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.1.1",
        "192.88.99.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    """Loopback, private, link-local, metadata, shared, multicast, reserved, and each of them inside an IPv6 address."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])
def test_a_public_address_is_allowed(address: str) -> None:
    """The internet is allowed, also through an IPv6-only network's NAT64."""
    assert is_public(address)


def test_a_nonsense_entry_names_its_setting() -> None:
    """An IPv6 entry that is none stops the command."""
    with pytest.raises(SettingsError, match="ARTIFACT_HOSTS"):
        HostRules.of(("[:::]",), allow_insecure=False)
