"""What holds for every exchange with Sume's API."""

import ssl
from datetime import timedelta

import pytest

from shared.errors import SumeApiError
from shared.sume.api import SumeApi
from shared.sume.bounded_http import BoundedTransport


def test_certificates_are_verified() -> None:
    """TLS needs a certificate that is trusted and of the host's name."""
    tls = BoundedTransport(timeout=timedelta(seconds=1))._tls
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname


@pytest.mark.parametrize("host", ["a" * 64, "a..b", "-", "xn--\u00e9"])
def test_a_host_that_is_none_is_an_error(host: str) -> None:
    """A base URL that cannot name a host fails as an unusable connection, not with a foreign exception."""
    api = SumeApi(f"http://{host}:9", api_key="sk-planted-secret", timeout=timedelta(seconds=1))
    with pytest.raises(SumeApiError):
        api.status("a")
    api.close()


@pytest.mark.parametrize("key", ["sk-\u00e9", "sk\r\nX-Evil: 1", ""])
def test_an_odd_key_never_shows_in_an_error(key: str) -> None:
    """A key that is no header value fails a question without being repeated."""
    api = SumeApi("http://127.0.0.1:9", api_key=key, timeout=timedelta(seconds=1))
    with pytest.raises(SumeApiError) as caught:
        api.status("a")
    assert "Evil" not in str(caught.value)
    api.close()
