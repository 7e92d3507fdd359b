"""The artifact hosting and its ways to misbehave."""

import hashlib
import http.client
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import pytest

from shared.sandbox.sume import Content, Sume

BODY = bytes(range(256)) * 40


@dataclass
class Got:
    """One answer, as far as it came."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    whole: bool


def get(url: str, *, timeout: float = 5, **headers: str) -> Got:
    """GET a URL byte for byte as it is, once; header names are written in snake case."""
    host, slash, target = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=timeout)
    try:
        connection.request("GET", slash + target, headers={n.replace("_", "-"): v for n, v in headers.items()})
        response = connection.getresponse()
        try:
            return Got(response.status, response.headers, response.read(), whole=True)
        except http.client.IncompleteRead as error:
            return Got(response.status, response.headers, error.partial, whole=False)
    finally:
        connection.close()


def test_whole_file(sume: Sume) -> None:
    """A file is served with its length, type and ETag."""
    got = get(sume.host("a b.png".replace(" ", "%20"), BODY).url())
    assert (got.status, got.body) == (200, BODY)
    assert got.headers["Content-Length"] == str(len(BODY))
    assert got.headers["Content-Type"] == "image/png"
    assert got.headers["Accept-Ranges"] == "bytes"
    assert got.headers["ETag"]


@pytest.mark.parametrize(("wanted", "part"), [("100-", slice(100, None)), ("100-199", slice(100, 200))])
def test_range(sume: Sume, wanted: str, part: slice) -> None:
    """A range is served as 206 with its place in the whole."""
    got = get(sume.host("a", BODY).url(), Range=f"bytes={wanted}")
    assert (got.status, got.body) == (206, BODY[part])
    first, last = 100, 100 + len(BODY[part]) - 1
    assert got.headers["Content-Range"] == f"bytes {first}-{last}/{len(BODY)}"


def test_range_beyond_the_end(sume: Sume) -> None:
    """A range that starts at or after the end is 416."""
    got = get(sume.host("a", BODY).url(), Range=f"bytes={len(BODY)}-")
    assert (got.status, got.headers["Content-Range"]) == (416, f"bytes */{len(BODY)}")


def test_if_range_of_another_file(sume: Sume) -> None:
    """A range of a file that was replaced gives all of the new one, with another ETag."""
    file = sume.host("a", BODY)
    etag = get(file.url()).headers["ETag"]
    assert get(file.url(), Range="bytes=5-", If_Range=etag).status == 206
    file.replace(Content(b"another file"))
    got = get(file.url(), Range="bytes=5-", If_Range=etag)
    assert (got.status, got.body) == (200, b"another file")
    assert got.headers["ETag"] != etag


def test_no_ranges(sume: Sume) -> None:
    """A host without ranges sends everything and says nothing of ranges."""
    got = get(sume.host("a", BODY, ranges=False).url(), Range="bytes=5-")
    assert (got.status, got.body) == (200, BODY)
    assert "ETag" not in got.headers
    assert "Accept-Ranges" not in got.headers


def test_cut(sume: Sume) -> None:
    """A transfer breaks off after so many bytes, as often as told, then goes well."""
    file = sume.host("a", BODY, cut_after=1000, cut_times=2)
    for _ in range(2):
        got = get(file.url())
        assert (got.whole, got.body) == (False, BODY[:1000])
    assert get(file.url()).body == BODY


def test_cut_counts_from_the_start_of_a_range(sume: Sume) -> None:
    """Each resumed transfer comes as far as the first did."""
    got = get(sume.host("a", BODY, cut_after=1000).url(), Range="bytes=1000-")
    assert (got.status, got.whole, got.body) == (206, False, BODY[1000:2000])


def test_stall_until_released(sume: Sume) -> None:
    """A stalled transfer says so, goes on when released, and later ones do not stall."""
    file = sume.host("a", BODY, stall_after=1000)
    with ThreadPoolExecutor(1) as pool:
        download = pool.submit(get, file.url())
        assert file.stalled.wait(5)
        assert not download.done()
        file.release()
        assert download.result(5).body == BODY
    assert get(file.url()).body == BODY


def test_stall_is_silence(sume: Sume) -> None:
    """Before it is released nothing comes, and stopping ends it."""
    with pytest.raises(TimeoutError):
        get(sume.host("a", BODY, stall_after=1000).url(), timeout=0.2)


def test_drip(sume: Sume) -> None:
    """A slow host sends the same bytes."""
    file = sume.host("a", BODY, drip_bytes=2000, drip_wait=timedelta(milliseconds=1))
    assert get(file.url()).body == BODY


@pytest.mark.parametrize("status", [401, 403, 404, 410, 500, 503])
def test_status(sume: Sume, status: int) -> None:
    """A host answers any status as often as told."""
    file = sume.host("a", BODY, status=status, status_times=1)
    assert [get(file.url()).status for _ in range(2)] == [status, 200]


def test_lies_about_the_length(sume: Sume) -> None:
    """The announced length may be too large, too small or missing."""
    file = sume.host("a", BODY, announced_length=len(BODY) + 1)
    assert not get(file.url()).whole
    file.announced_length = 10
    assert get(file.url()).body == BODY[:10]
    file.announce_length = False
    got = get(file.url())
    assert (got.headers["Content-Length"], got.body) == (None, BODY)


def test_html_instead_of_an_image(sume: Sume) -> None:
    """What is served may be of another type than what was promised."""
    file = sume.host("a.png", b"<html>", served_type="text/html")
    assert file.entry()["content_type"] == "image/png"
    assert get(file.url()).headers["Content-Type"] == "text/html"


def test_empty_file(sume: Sume) -> None:
    """A file may be empty, also when a range is asked for."""
    file = sume.host("a", b"")
    assert (get(file.url()).status, get(file.url()).body) == (200, b"")
    assert get(file.url(), Range="bytes=5-").status == 200


def test_redirect(sume: Sume) -> None:
    """A host may send the client anywhere."""
    got = get(sume.host("a", b"", redirect_to="http://169.254.169.254/latest").url())
    assert (got.status, got.headers["Location"]) == (302, "http://169.254.169.254/latest")


def test_expired_urls(sume: Sume) -> None:
    """Expired URLs stay refused until the job's result gives fresh ones."""
    file = sume.host("a", BODY, expired_status=410)
    job = sume.add_job("job_1", artifacts=[file])
    first, second = (job.artifact_list()[0]["url"] for _ in range(2))
    assert first != second
    assert {get(first).status, get(second).status} == {200}
    file.expire()
    assert {get(first).status, get(second).status} == {410}
    assert get(job.result_data()["result"]["artifacts"][0]["url"]).status == 200


def test_urls_count_byte_for_byte(sume: Sume) -> None:
    """A client that rewrites the escapes of a signature is refused."""
    file = sume.host("a", BODY)
    assert get(file.url()).status == 200
    assert get(file.url().replace("%2f", "%2F")).status == 403
    assert get(file.url().replace("%2f", "/")).status == 403


def test_unknown_file(sume: Sume) -> None:
    """What is not hosted is not found."""
    assert get(f"{sume.media_url}/other").status == 404


def test_large_content_is_generated(sume: Sume) -> None:
    """A large file costs little memory, has the SHA-256 it states, and no two megabytes alike at round offsets."""
    size = 5_000_001
    file = sume.host("big.mp4", Content.generated(size), type="video", content_type="video/mp4")
    got = get(file.url())
    assert len(got.body) == size
    assert hashlib.sha256(got.body).hexdigest() == file.entry()["sha256"]
    assert get(file.url(), Range="bytes=1048576-").body == got.body[1_048_576:] != got.body[: size - 1_048_576]


def test_entry_states_what_it_is_told(sume: Sume) -> None:
    """A job's list can lie about a file, and leave things out."""
    file = sume.host("cat.png", BODY, stated={"sha256": "00", "size_bytes": None})
    entry = file.entry()
    assert entry["sha256"] == "00"
    assert "size_bytes" not in entry
    assert (entry["filename"], entry["type"]) == ("cat.png", "image")


def test_headers_are_recorded(sume: Sume) -> None:
    """What reached the artifact host can be asserted, for example that no key did."""
    url = sume.host("a", BODY).url()
    get(url, Authorization="Bearer leaked")
    (request,) = sume.media_requests.all("/a")
    assert request.headers["authorization"] == "Bearer leaked"
    assert url.endswith(f"/a?{request.query}")
