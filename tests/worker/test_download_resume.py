"""Tests of broken transfers: resumed where that is safe, begun anew where not, bounded in every case."""

import random
import time

import pytest

from tests.worker.downloads import PNG, MemoryPartial, ResumableHost, fetch, sha256
from tests.worker.scripted_host import Answerer, ScriptedHost, exactly, head, whole
from worker.failures import DownloadError, ExpiredUrlError, IntegrityError

BODY = random.Random(1).randbytes(100_000)


def cut(*, etag: str = '"v1"') -> Answerer:
    """Announce the whole body and close after 40,000 bytes."""
    return exactly(head(200, content_length=len(BODY), etag=etag), BODY[:40_000])


def rest(start: int, *, etag: str = '"v1"', place: str | None = None) -> Answerer:
    """Answer with the body from a place on."""
    place = place or f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"
    return whole(BODY[start:], status=206, content_range=place, etag=etag)


def test_twenty_cuts_cost_less_than_twice_the_file() -> None:
    """Each resume continues exactly where the last one ended, and soon: cuts with good progress need no patience."""
    began = time.monotonic()
    script, into = ResumableHost(BODY, cut_after=4_800, cuts=20), MemoryPartial()
    with ScriptedHost([script]) as host:
        verified = fetch(host, into, sha256=sha256(BODY))
    assert bytes(into.data) == BODY
    assert verified.bytes == len(BODY)
    assert time.monotonic() - began < 6
    assert len(host.requests) == 21
    assert script.sent == into.written == len(BODY)


def test_a_resume_asks_for_the_same_content() -> None:
    """Range goes with If-Range: the strong ETag, else Last-Modified."""
    with ScriptedHost([cut(), rest(40_000)]) as host:
        fetch(host)
    assert host.requests[1].headers["range"] == "bytes=40000-"
    assert host.requests[1].headers["if-range"] == '"v1"'
    modified = "Wed, 21 Oct 2026 07:28:00 GMT"
    first = exactly(head(200, content_length=len(BODY), last_modified=modified), BODY[:40_000])
    place = f"bytes 40000-{len(BODY) - 1}/{len(BODY)}"
    with ScriptedHost([first, whole(BODY[40_000:], status=206, content_range=place)]) as host:
        fetch(host)
    assert host.requests[1].headers["if-range"] == modified


@pytest.mark.parametrize("etag", ['W/"weak"', "unquoted", '"a"\r\n\t"folded"'])
def test_without_a_strong_validator_the_file_is_begun_anew(etag: str) -> None:
    """What cannot tell one content from another is not relied upon."""
    into = MemoryPartial()
    with ScriptedHost([cut(etag=etag), whole(BODY)]) as host:
        fetch(host, into)
    assert "range" not in host.requests[1].headers
    assert bytes(into.data) == BODY


@pytest.mark.parametrize(
    "second",
    [
        rest(40_000, place=f"bytes 39999-{len(BODY) - 1}/{len(BODY)}"),
        rest(40_000, place=f"bytes 40000-{len(BODY)}/{len(BODY) + 1}"),
        rest(40_000, place="nonsense"),
        rest(40_000, etag='"v2"'),
        whole(b"", status=206),
        whole(b"", status=416),
    ],
    ids=["wrong offset", "another size", "nonsense", "changed ETag", "no place", "416"],
)
def test_a_resume_that_does_not_fit_begins_the_file_anew(second: Answerer) -> None:
    """A wrong offset, another size, a changed ETag, 416: the file is asked for without Range."""
    into = MemoryPartial()
    with ScriptedHost([cut(), second, whole(BODY)]) as host:
        fetch(host, into, sha256=sha256(BODY))
    assert bytes(into.data) == BODY
    assert "range" not in host.requests[2].headers


def test_a_resume_answered_in_full_is_used_in_full() -> None:
    """A 200 in answer to Range is the file from its start, possibly a new one."""
    into = MemoryPartial()
    with ScriptedHost([cut(), whole(PNG, etag='"v2"')]) as host:
        assert fetch(host, into).sha256 == sha256(PNG)
    assert bytes(into.data) == PNG


def test_a_part_of_the_rest_is_progress() -> None:
    """A host may send less than was asked for."""
    part = whole(BODY[40_000:50_000], status=206, content_range=f"bytes 40000-49999/{len(BODY)}", etag='"v1"')
    with ScriptedHost([cut(), part, rest(50_000)]) as host:
        assert fetch(host).sha256 == sha256(BODY)


@pytest.mark.parametrize(
    "hiccup", [whole(b"", status=503), whole(b"", status=429), exactly(b"")], ids=["503", "429", "hangs up"]
)
def test_a_host_that_is_busy_while_resuming_is_asked_again(hiccup: Answerer) -> None:
    """What has arrived is not thrown away for one bad answer."""
    with ScriptedHost([cut(), hiccup, hiccup, rest(40_000)]) as host:
        assert fetch(host).sha256 == sha256(BODY)


def test_resuming_in_vain_ends() -> None:
    """Three connections that bring no byte end the attempt."""
    with ScriptedHost([cut(), exactly(b"")]) as host, pytest.raises(DownloadError):
        fetch(host)
    assert len(host.requests) == 4


def test_a_host_that_cannot_resume_costs_three_times_the_file_at_most() -> None:
    """Beginning anew is bounded, and the attempt ends as a failure of the host."""
    script = ResumableHost(BODY, cut_after=99_999, cuts=100, etag=None)
    with ScriptedHost([script]) as host, pytest.raises(DownloadError, match="cut after 99999 of 100000"):
        fetch(host)
    assert script.sent < 3 * len(BODY)
    assert len(host.requests) == 3


def test_a_host_that_ignores_range_is_begun_anew_twice_at_most() -> None:
    """An ETag promises nothing: a host that sends the whole file each time is bounded too."""
    growing = [exactly(head(200, content_length=len(BODY), etag='"v1"'), BODY[: 20_000 * n]) for n in (1, 2, 3, 4)]
    with ScriptedHost(growing) as host, pytest.raises(DownloadError, match="does not resume"):
        fetch(host)
    assert len(host.requests) == 4


def test_a_file_begun_anew_is_judged_anew() -> None:
    """A page whose transfer was cut says nothing about the medium that came instead."""
    page = exactly(head(200, content_length=1000, content_type="text/html"), b"<!doctype html>")
    with ScriptedHost([page, whole(b"#EXTM3U\n", content_type="audio/mpegurl")]) as host:
        assert fetch(host, type="audio").content_type == "audio/mpegurl"


def test_more_than_the_rest_is_refused() -> None:
    """A resume that brings more bytes than the file has is not the file."""
    place = f"bytes 40000-{len(BODY) - 1}/{len(BODY)}"
    longer = exactly(head(206, content_range=place, etag='"v1"'), BODY[40_000:] + b"more")
    with ScriptedHost([cut(), longer]) as host, pytest.raises(IntegrityError, match="the host announced 100000"):
        fetch(host)


def test_a_url_that_expires_while_resuming_is_told_apart() -> None:
    """A long download may outlive its URL."""
    with ScriptedHost([cut(), whole(b"", status=403)]) as host, pytest.raises(ExpiredUrlError):
        fetch(host)


def test_a_cut_chunked_body_is_resumed() -> None:
    """A chunked body that ends without its last chunk was cut."""
    start = head(200, transfer_encoding="chunked", etag='"v1"')
    with ScriptedHost([exactly(start, b"9c40\r\n", BODY[:40_000]), rest(40_000)]) as host:
        assert fetch(host).sha256 == sha256(BODY)


def test_an_unframed_body_shorter_than_stated_was_cut() -> None:
    """Where only the end of the connection ends the body, the stated size tells a cut from an end."""
    start = head(200, etag='"v1"')
    with ScriptedHost([exactly(start, BODY[:40_000]), rest(40_000)]) as host:
        assert fetch(host, size_bytes=len(BODY)).sha256 == sha256(BODY)


def test_a_host_that_announces_less_than_it_sends_is_cut_at_its_word() -> None:
    """Bytes past Content-Length are not part of the file."""
    with ScriptedHost([exactly(head(200, content_length=10), BODY)]) as host:
        assert fetch(host).bytes == 10
