"""The downloader against generated misbehaviour: a whole verified file, or an error of ours."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import AttemptError
from tests.fuzz.budget import explore
from tests.worker.downloads import PNG, MemoryPartial, fetch, sha256
from tests.worker.scripted_host import ScriptedHost, exactly

BODY = PNG[:64]
STATUSES = st.sampled_from([b"200", b"206", b"416", b"302", b"103", b"100", b"204", b"304", b"503", b"2000", b"x", b""])
HEADERS = st.sampled_from(
    [
        b"Content-Length: 64",
        b"Content-Length: 30",
        b"Content-Length: 9999999999999999999999",
        b"Content-Length: -1",
        b"Content-Length: 64, 64",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Content-Encoding: gzip",
        b"Content-Type: text/html",
        b'ETag: "v1"',
        b"ETag: \xff\x00",
        b"Last-Modified: yesterday",
        b"Content-Range: bytes 0-63/64",
        b"Content-Range: bytes 30-63/64",
        b"Content-Range: bytes 99999999999999999999-1/*",
        b"Location: /next",
        b"Location: http://[",
        b"Location: //\xff\xfe",
        b"Location: ",
        b": nameless",
        b"folded\r\n\theader",
        b"Connection: keep-alive",
    ]
)
BODIES = st.one_of(
    st.sampled_from([BODY, BODY[:30], BODY[30:], b"", BODY * 3, b"40\r\n" + BODY + b"\r\n0\r\n\r\n"]),
    st.sampled_from([b"-5\r\nhello", b"40\r\n" + BODY[:30], b"zz\r\n", b"0\r\nTrailer: x", b"ffffffffffffffffff\r\nx"]),
    st.binary(max_size=100),
)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """One answer, more or less HTTP."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    lines = [b"HTTP/1." + draw(st.sampled_from([b"0 ", b"1 ", b"9 ", b" "])) + draw(STATUSES) + b" Reason"]
    lines += draw(st.lists(HEADERS, max_size=5))
    return b"\r\n".join([*lines, b"", b""]) + draw(BODIES)


ANNOUNCED = st.fixed_dictionaries(
    {}, optional={"size_bytes": st.sampled_from([64, 30, 0]), "sha256": st.just(sha256(BODY)), "type": st.just("image")}
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(answers(), min_size=1, max_size=4), announced=ANNOUNCED)
def download_from(script: list[bytes], announced: dict[str, Any]) -> None:
    """Download from a host that answers so, and hold what came of it to the promise."""
    into = MemoryPartial()
    with ScriptedHost([exactly(answer) for answer in script]) as host:
        try:
            verified = fetch(host, into, **announced)
        except AttemptError as error:
            assert error.reason in {"download_failed", "integrity_failed", "url_not_allowed", "host_not_allowed"}  # noqa: PT017
        else:
            assert verified.bytes == len(into.data) == announced.get("size_bytes", verified.bytes)
            assert verified.sha256 == sha256(bytes(into.data)) == announced.get("sha256", verified.sha256)
    assert len(host.requests) <= 40


@pytest.mark.timeout(0)
def test_whatever_a_host_answers() -> None:
    """No answer makes anything but a verified file or an AttemptError, in a bounded number of requests."""
    explore(download_from)
