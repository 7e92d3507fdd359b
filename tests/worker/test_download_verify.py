"""Tests of what comes in: only what was promised is kept."""

import gzip
from typing import Any

import pytest

from shared.errors import PermanentError
from tests.worker.downloads import PNG, MemoryPartial, fetch, sha256
from tests.worker.scripted_host import Answerer, ScriptedHost, exactly, head, whole
from worker.download import Verified
from worker.failures import DownloadError, ExpiredUrlError, IntegrityError

CHUNKED = head(200, transfer_encoding="chunked")
SVG = b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'><title>t</title></svg>"
PAGE = b"<!DOCTYPE html><html><body>Sign in</body></html>"


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> Answerer:
    """Answer with a chunked body."""
    return exactly(CHUNKED, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), end)


@pytest.mark.parametrize(
    "answer",
    [
        whole(PNG, content_type="image/png"),
        chunked(PNG[:1], PNG[1:1000], PNG[1000:]),
        exactly(b"HTTP/1.0 200 OK\r\n\r\n", PNG),
        whole(PNG, content_encoding="identity"),
        whole(PNG, content_encoding=""),
    ],
    ids=["length", "chunked", "end of connection", "identity", "no encoding"],
)
def test_a_whole_file_arrives(answer: Answerer) -> None:
    """Whatever says where the body ends, its bytes, size and SHA-256 are right."""
    into = MemoryPartial()
    with ScriptedHost([answer]) as host:
        verified = fetch(host, into, type="image", size_bytes=len(PNG), sha256=sha256(PNG).upper())
    assert bytes(into.data) == PNG
    assert (verified.bytes, verified.sha256) == (len(PNG), sha256(PNG))


def test_the_host_s_content_type_is_kept() -> None:
    """Where Sume does not say what a file is, its host may."""
    with ScriptedHost([whole(PNG, content_type="image/PNG; charset=binary")]) as host:
        verified = fetch(host)
    assert verified == Verified(len(PNG), sha256(PNG), "image/png", (f"127.0.0.1:{host.port}",))


REFUSED: list[tuple[Answerer, dict[str, Any], str]] = [
    (whole(PNG), {"size_bytes": len(PNG) + 1}, "bytes where 2057 were stated"),
    (whole(PNG), {"size_bytes": len(PNG) - 1}, "bytes or more where 2055 were stated"),
    (chunked(PNG), {"size_bytes": len(PNG) + 1}, "bytes where 2057 were stated"),
    (chunked(PNG), {"size_bytes": len(PNG) - 1}, "bytes or more where 2055 were stated"),
    (whole(PNG), {"sha256": "0" * 64}, "SHA-256 is not the stated one"),
    (whole(PNG), {"sha256": "nonsense"}, "not 64 hex digits"),
    (whole(gzip.compress(PNG), content_encoding="gzip"), {}, "nobody asked for"),
    (exactly(head(200, transfer_encoding="gzip, chunked")), {}, "Transfer-Encoding"),
    (exactly(head(200, content_length="x")), {}, "not a number"),
    (exactly(head(200, content_length="-1")), {}, "not a number"),
    (exactly(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), {}, "different values"),
    (whole(PAGE), {"type": "transcript", "size_bytes": 9}, "9 were stated"),
]
NO_FILE: list[tuple[Answerer, dict[str, Any], str]] = [
    (whole(b""), {}, "is empty"),
    (chunked(), {}, "is empty"),
    (exactly(head(200)), {}, "is empty"),
    (whole(PAGE), {"type": "image"}, "page where a medium"),
    (whole(PAGE), {"type": "image", "sha256": "0" * 64}, "page where a medium"),
    (whole(PAGE, content_type="text/html"), {"type": "image", "size_bytes": 7}, "page where a medium"),
    (whole(b"\xef\xbb\xbf\n  <HTML>"), {"content_type": "video/mp4"}, "page where a medium"),
    (whole(b"<?xml version='1.0'?><!-- x --><html><svg>"), {"type": "image"}, "page where a medium"),
    (whole(b'{"error": "gone"}'), {"type": "audio"}, "page where a medium"),
    (whole(b"[]"), {"type": "image", "content_type": "application/octet-stream"}, "page where a medium"),
    (whole(b"Sorry", content_type="text/html; charset=utf-8"), {"type": "image"}, "page where a medium"),
    (whole(b"Sorry", content_type="application/problem+json"), {"type": "image"}, "page where a medium"),
    (whole(PAGE), {}, "page where a medium"),  # the URL ends in .png
]


@pytest.mark.parametrize(("answer", "announced", "problem"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_what_was_not_promised_is_refused(answer: Answerer, announced: dict[str, Any], problem: str) -> None:
    """A wrong size, SHA-256 or encoding is an integrity failure."""
    with ScriptedHost([answer]) as host, pytest.raises(IntegrityError, match=problem) as caught:
        fetch(host, **announced)
    assert caught.value.reason == "integrity_failed"


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate, gzip"])
def test_a_bomb_is_not_unpacked(encoding: str) -> None:
    """An encoding nobody asked for is refused before a byte of the body is taken, however much it would become."""
    bomb, into = gzip.compress(bytes(10_000_000)), MemoryPartial()
    with ScriptedHost([whole(bomb, content_encoding=encoding)]) as host, pytest.raises(IntegrityError):
        fetch(host, into)
    assert into.written == 0


def test_a_file_that_is_an_archive_stays_packed() -> None:
    """Its bytes are the file, whatever they could be unpacked to."""
    packed = gzip.compress(bytes(10_000_000))
    with ScriptedHost([whole(packed, content_type="application/gzip")]) as host:
        assert fetch(host, path="/all.tar.gz").bytes == len(packed)


@pytest.mark.parametrize(("answer", "announced", "problem"), NO_FILE, ids=map(str, range(len(NO_FILE))))
def test_a_page_or_nothing_is_the_hosts_failure(answer: Answerer, announced: dict[str, Any], problem: str) -> None:
    """As with a 5xx: a maintenance page with status 200 that lasts for hours kills no job."""
    with ScriptedHost([answer]) as host, pytest.raises(DownloadError, match=problem) as caught:
        fetch(host, **announced)
    assert caught.value.reason == "download_failed"


@pytest.mark.parametrize(
    ("body", "served_as", "announced"),
    [
        (SVG, "image/svg+xml", {"type": "image"}),
        (SVG, "text/html", {"content_type": "image/svg+xml"}),
        (PNG, "text/html", {"type": "image"}),
        (b"#EXTM3U\n", "application/vnd.apple.mpegurl", {"type": "video"}),
        (b'{"v": "5.5"}', "application/json", {"type": "image", "content_type": "application/json"}),
        (b'{"v": "5.5"}', "application/json", {"type": "transcript"}),
        (PAGE, "text/html", {"filename": "report.html"}),
        (b"[\x00\x01", "audio/l16", {"type": "audio"}),
    ],
)
def test_a_legitimate_file_is_not_taken_for_a_page(body: bytes, served_as: str, announced: dict[str, Any]) -> None:
    """An SVG is text, a medium may be mislabelled, and a page may be what was promised."""
    with ScriptedHost([whole(body, content_type=served_as)]) as host:
        assert fetch(host, **announced).bytes == len(body)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_an_expired_url_is_told_apart(status: int) -> None:
    """The pipeline asks Sume for a fresh URL before it counts the attempt as failed."""
    with ScriptedHost([whole(b"", status=status)]) as host, pytest.raises(ExpiredUrlError) as caught:
        fetch(host, path="/picture.png?Signature=secret")
    assert str(caught.value) == f"127.0.0.1:{host.port}/picture.png: answered {status}"


@pytest.mark.parametrize("status", [101, 201, 204, 205, 206, 300, 304, 305, 400, 402, 416, 418, 429, 500, 503, 999])
def test_another_status_is_no_file(status: int) -> None:
    """Whatever a host answers but 200, its body is not the file, and the attempt may be repeated."""
    with ScriptedHost([whole(PNG, status=status, content_range="bytes 0-9/10")]) as host:
        with pytest.raises(DownloadError, match=f"answered {status}") as caught:
            fetch(host)
        assert caught.value.reason == "download_failed"
        assert len(host.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [exactly(b""), exactly(b"nonsense\r\n\r\n"), exactly(head(200)[:9]), exactly(b"\0" * 70_000)],
    ids=["nothing", "nonsense", "half a line", "a long line"],
)
def test_what_is_not_http_is_a_failure_of_the_host(answer: Answerer) -> None:
    """Garbage for an answer is translated like any other failure."""
    with ScriptedHost([answer]) as host, pytest.raises(DownloadError):
        fetch(host)


def test_a_file_over_the_limit_is_final() -> None:
    """A file known to be too large is not begun, and an endless one is stopped at the limit."""
    limit = {"max_bytes": 1000}
    into = MemoryPartial()
    for answer in (whole(b"x" * 1001), chunked(*[b"x" * 300] * 10), exactly(head(200), b"x" * 3000)):
        with ScriptedHost([answer]) as host, pytest.raises(PermanentError, match="ARTIFACT_MAX_BYTES") as caught:
            fetch(host, into, settings=limit)
        assert caught.value.reason == "too_large"
        assert len(into.data) <= 1000
        into.restart()
    with ScriptedHost([whole(b"x" * 1000)]) as host:
        assert fetch(host, settings=limit).bytes == 1000
