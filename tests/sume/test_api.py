"""Sume's job API: what each answer means, and that nothing but our question leaves."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from shared.errors import SumeApiError
from shared.event import Artifact
from shared.sume.api import JobStatus, SumeApi
from tests.sume.answering import Answering, Script, answer, answering

KEY = "sk-planted-secret"
UNFINISHED: tuple[object, ...] = ("queued", "processing", "unheard", "COMPLETED", "", None, 17, ["completed"], {})


@contextmanager
def asking(*scripts: Script | bytes, seconds: float = 10) -> Iterator[tuple[SumeApi, Answering]]:
    """Give an API client and the server it asks."""
    with answering(*scripts) as server:
        api = SumeApi(server.base_url, api_key=KEY, timeout=timedelta(seconds=seconds))
        try:
            yield api, server
        finally:
            api.close()


def telling(**data: Any) -> bytes:
    """Return an answer with this data."""
    return answer(json.dumps({"data": data}).encode())


def failure_of(*scripts: Script | bytes, seconds: float = 10) -> SumeApiError:
    """Return the error that a status question ends with."""
    with asking(*scripts, seconds=seconds) as (api, _), pytest.raises(SumeApiError) as caught:
        api.status("a", status_url=None)
    assert KEY not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("sume_status", "ended"),
    [
        ("completed", "job.completed"),
        ("failed", "job.failed"),
        ("nsfw", "job.failed"),
        ("canceled", "job.canceled"),
        *[(odd, None) for odd in UNFINISHED],
    ],
)
def test_only_the_four_final_statuses_end_a_job(sume_status: object, ended: str | None) -> None:
    """A status that is not known means that the job has not ended."""
    with asking(telling(request_id="a", sume_status=sume_status, job={"id": "a"})) as (api, server):
        assert api.status("a").ended == ended
    assert server.targets == ["/v1/jobs/a/status"]


def test_the_error_of_a_job_keeps_its_keys() -> None:
    """Sume's error comes with a job that failed, and not with one that completed or goes on."""
    job = {"id": "a", "error": {"code": "nsfw", "message": "Re\nfused", "public_reason": "policy"}}
    statuses = ("nsfw", "completed", "processing")
    with asking(*[telling(sume_status=status, job=job) for status in statuses]) as (api, _):
        told = [api.status("a") for _ in statuses]
    assert told == [
        JobStatus("job.failed", {"code": "nsfw", "message": "Re fused", "public_reason": "policy"}),
        JobStatus("job.completed", None),
        JobStatus(None, None),
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"request_id": "b"},
        {"request_id": 17},
        {"request_id": ["a"]},
        {"job": {"id": "b"}},
        {"request_id": "a", "job": {"id": "A"}},
    ],
)
def test_an_answer_about_another_job_is_refused(data: dict[str, Any]) -> None:
    """Neither status nor result is believed when it names another job."""
    told = telling(sume_status="completed", result={"artifacts": []}, **data)
    with asking(told) as (api, _):
        for question in (api.status, api.result):
            with pytest.raises(SumeApiError, match="another job"):
                question("a")


def test_the_result_is_the_artifact_list() -> None:
    """Artifacts are read as in a delivery, and an empty list is an answer."""
    listed = telling(
        request_id="a", status="COMPLETED", result={"artifacts": [{"url": "https://m/x", "type": "image"}]}
    )
    with asking(listed, telling(status="COMPLETED", result={"artifacts": []})) as (api, server):
        assert api.result("a") == [Artifact(0, "https://m/x", type="image")]
        assert api.result("a") == []
    assert server.targets == ["/v1/jobs/a/result"] * 2


@pytest.mark.parametrize(
    "data", [{}, {"result": None}, {"result": {}}, {"result": {"artifacts": None}}, {"result": {"artifacts": {}}},
             {"status": "IN_PROGRESS", "result": {"artifacts": []}}]
)  # fmt: skip
def test_no_list_is_not_an_empty_list(data: dict[str, Any]) -> None:
    """A result without a list, or of a job that goes on, never says that there are no artifacts."""
    with asking(telling(**data)) as (api, _), pytest.raises(SumeApiError):
        api.result("a")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"null", b'{"data":', b'{"data":[]}', b'{"data":null}', b"{}", b"[" * 100_000, b"\xff"],
)
def test_an_answer_that_is_not_the_api_s_is_an_error(body: bytes) -> None:
    """HTML, truncated and foreign JSON are no answer."""
    error = failure_of(answer(body))
    assert (error.http_status, error.retry_after) == (200, None)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120), ("0", 0), ("1000000", 1_000_000), ("-5", None), ("soon", None), ("", None), ("1.5", None)],
)
def test_a_refusal_keeps_its_status_code_and_wait(header: str, seconds: float | None) -> None:
    """An error answer becomes an error with status, Sume's code and Retry-After, and is asked once."""
    body = json.dumps({"error": {"code": "rate_limited", "message": f"{KEY} slow", "retryable": True}}).encode()
    refused = answer(body, f"Retry-After: {header}", status="429 Too Many Requests")
    with asking(refused) as (api, server), pytest.raises(SumeApiError) as caught:
        api.status("a")
    assert (caught.value.http_status, caught.value.retry_after) == (429, seconds)
    host = server.base_url.removeprefix("http://")
    assert str(caught.value) == f"GET {host}/v1/jobs/a/status: Sume's API answered 429 (rate_limited)"
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":"x"}', b'{"error":{"code":["x"]}}', b"[" * 100_000])
def test_a_refusal_may_have_any_body(body: bytes) -> None:
    """An error answer that is not in Sume's shape is an error all the same, naming where it came from."""
    assert "/v1/jobs/a/status" in str(failure_of(answer(body, status="404 Not Found")))


def test_a_redirect_is_not_followed() -> None:
    """The key goes nowhere else, not even to a place Sume's API names."""
    with answering(b"") as other:
        moved = answer(b"", f"Location: {other.base_url}/v1/jobs/a/status", status="302 Found")
        assert failure_of(moved).http_status == 302
    assert other.requests == []


def test_the_key_is_sent_to_its_own_origin() -> None:
    """Each request carries the key, asks for unencoded JSON, and has no body."""
    with asking(telling()) as (api, server):
        api.status("a")
    head = server.requests[0].lower()
    assert f"authorization: bearer {KEY}".encode() in head
    assert b"accept-encoding: identity" in head
    assert head.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "target",
    ["/v1/jobs/a/status", "/a/../b/./c//d", "/%2f%7Ee~{x}?q=%2F+%20&r=a|b'\"^`", "/?", "/", "?a=b", ""],
)
def test_a_status_url_is_asked_byte_for_byte(target: str) -> None:
    """A stored status_url of our origin goes out exactly as given, without its fragment."""
    with asking(telling(sume_status="completed")) as (api, server):
        assert api.status("a", status_url=f"{server.base_url}{target}#part").ended == "job.completed"
    assert server.targets == [target if target.startswith("/") else f"/{target}"]


def test_a_status_url_of_another_origin_is_not_asked() -> None:
    """The usual address is asked instead, so the job is found and the key stays."""
    with answering(b"") as other, asking(telling()) as (api, server):
        port = server.base_url.rpartition(":")[2]
        for url in (f"{other.base_url}/x", f"http://127.0.0.1:{port}@{other.base_url[7:]}/x", "not a url"):
            api.status("a", status_url=url)
    assert other.requests == []
    assert server.targets == ["/v1/jobs/a/status"] * 3


def test_a_job_id_goes_out_percent_encoded_below_the_base_path() -> None:
    """A colon is encoded, and a path in the base URL stays."""
    with answering(telling()) as server:
        api = SumeApi(f"{server.base_url}/base/", api_key=KEY)
        api.status("a:b")
        api.close()
    assert server.targets == ["/base/v1/jobs/a%3Ab/status"]


def dripping(start: bytes) -> Script:
    """Send a start, then one byte a moment for as long as somebody listens."""

    def drip(connection: Any, over: threading.Event) -> None:
        connection.sendall(start)
        while not over.wait(0.01):
            connection.sendall(b"x")

    return drip


@pytest.mark.parametrize(
    "script",
    [
        dripping(b""),
        dripping(b"HTTP/1.1 200 OK\r\nX-Head: "),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
        lambda _connection, over: over.wait(),
    ],
    ids=["status line", "headers", "body", "silence"],
)
def test_a_server_that_drips_is_cut_by_the_deadline(script: Script) -> None:
    """The whole exchange ends in time although every single read does."""
    assert failure_of(script, seconds=0.3).http_status is None


def test_an_endless_answer_is_cut_by_its_size() -> None:
    """An answer is read to a sane size and no further."""

    def flood(connection: Any, _over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b" " * 65_536)

    assert "too large" in str(failure_of(flood))


def test_an_encoded_answer_is_refused() -> None:
    """A gzip bomb is never opened, as nothing encoded was asked for."""
    assert "encoded" in str(failure_of(answer(b"\x1f\x8b", "content-encoding: gzip")))


@pytest.mark.parametrize("reply", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_broken_exchange_is_an_error(reply: bytes) -> None:
    """A closed connection, nonsense and a short body are no answer, and name host and path."""
    assert "/v1/jobs/a/status: no usable connection" in str(failure_of(reply))


def test_nobody_listening_is_an_error() -> None:
    """A refused connection is an error that says so."""
    with answering(b"") as server:
        pass
    with pytest.raises(SumeApiError, match="ConnectError"):
        SumeApi(server.base_url, api_key=KEY).status("a")


def test_threads_share_one_client() -> None:
    """Many questions at once get each their own answer."""
    with asking(telling(sume_status="completed")) as (api, server), ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda n: api.status(f"job{n}").ended, range(40)))
    assert told == ["job.completed"] * 40
    assert sorted(server.targets) == sorted(f"/v1/jobs/job{n}/status" for n in range(40))
