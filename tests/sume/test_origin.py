"""Which URLs may be asked with the key."""

import pytest

from shared.sume.origin import same_origin


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://api.open.sume.com/x", True),
        ("HTTPS://API.open.sume.com:443/x", True),
        ("http://api.open.sume.com/x", False),
        ("https://api.open.sume.com:8443/x", False),
        ("https://api.open.sume.com:0/x", False),
        ("https://api.open.sume.com:x/x", False),
        ("https://api.open.sume.com:99999/x", False),
        ("https://api.open.sume.com.evil.example/x", False),
        ("https://evil.example/https://api.open.sume.com/x", False),
        ("https://user@api.open.sume.com/x", False),
        ("https://api.open.sume.com\\@evil.example/x", False),
        ("https://api.open.sume.com /x", False),
        ("https://api.open.sume.com\t/x", False),
        ("https://api.open.sume.com/\n", False),
        ("https://api.open.sume.com/é", False),
        ("//api.open.sume.com/x", False),
        ("/x", False),
        ("https://[::1/x", False),
        ("ftp://api.open.sume.com/x", False),
        ("", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, same: bool) -> None:  # noqa: FBT001 - a column of the table
    """Only a URL of our very origin, without a user and odd characters, may be asked with the key."""
    assert same_origin(url, "https://api.open.sume.com/base/") is same
