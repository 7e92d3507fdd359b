"""The job API, as the official client sees it."""

import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
from sume_client import (  # type: ignore[import-untyped] # it ships no types
    NSFW,
    Cancelled,
    Completed,
    Failed,
    InProgress,
    Queued,
    Status,
    SumeClientError,
    SyncClient,
)

from shared.sandbox.sume import Answer, Sume


@pytest.fixture
def client(sume: Sume) -> Iterator[SyncClient]:
    """The official client."""
    client = SyncClient(base_url=sume.api_url, api_key=sume.api_key, timeout=5)
    yield client
    client._client.close()


def ask(sume: Sume, path: str) -> httpx.Response:
    """Ask the job API once, without the official client's retries."""
    return httpx.get(f"{sume.api_url}{path}", headers={"Authorization": f"Bearer {sume.api_key}"}, timeout=5)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("queued", Queued),
        ("processing", InProgress),
        ("completed", Completed),
        ("failed", Failed),
        ("nsfw", NSFW),
        ("canceled", Cancelled),
    ],
)
def test_client_reads_status(sume: Sume, client: SyncClient, outcome: str, status: type[Status]) -> None:
    """Every outcome is what the official client calls it."""
    sume.add_job("job_1", outcome=outcome)
    assert client.status("job_1") == status()


def test_client_submits_and_gets_result(sume: Sume, client: SyncClient) -> None:
    """The official client submits a job through the catalog, follows it and reads its artifacts."""
    controller = client.submit("sandbox-video", {"prompt": "a cat"}, webhook_url="http://127.0.0.1:1/hook")
    assert controller.status() == Queued()
    job = sume.job(controller.request_id)
    assert job.webhook_url == "http://127.0.0.1:1/hook"
    job.artifacts = [sume.host("cat.mp4", b"moving", type="video", content_type="video/mp4")]
    sume.finish(job.job_id)
    artifact = client.result(job.job_id)["result"]["artifacts"][0]
    assert (artifact["type"], artifact["content_type"], artifact["size_bytes"]) == ("video", "video/mp4", 6)
    assert httpx.get(artifact["url"]).content == b"moving"
    (submitted,) = sume.api_requests.all("/v1/video-router/generate")
    assert submitted.headers["idempotency-key"]


def test_submit_with_one_key_is_one_job(sume: Sume) -> None:
    """The same Idempotency-Key gives the same job, another one another job."""
    ids = []
    for key in ("k1", "k1", "k2"):
        headers = {"Authorization": f"Bearer {sume.api_key}", "Idempotency-Key": key}
        response = httpx.post(
            f"{sume.api_url}/v1/image-router/generate", json={"model": "sandbox-image"}, headers=headers
        )
        ids.append(response.json()["data"]["request_id"])
    assert ids[0] == ids[1] != ids[2]


def test_client_cancels(sume: Sume, client: SyncClient) -> None:
    """A job that has not ended can be canceled, one that has cannot."""
    sume.add_job("job_1", outcome="processing")
    client.cancel("job_1")
    assert client.status("job_1") == Cancelled()
    with pytest.raises(SumeClientError, match="job_already_ended"):
        client.cancel("job_1")


def test_unknown_things_are_not_found(sume: Sume, client: SyncClient) -> None:
    """An unknown job, model or path is 404."""
    with pytest.raises(SumeClientError, match="job_not_found"):
        client.status("job_x")
    with pytest.raises(SumeClientError, match="model_not_found"):
        client.submit("no-such-model", {})
    assert ask(sume, "/v1/other").status_code == 404


def test_result_before_the_end_is_refused(sume: Sume) -> None:
    """There is no result of a job that is not completed."""
    sume.add_job("job_1", outcome="processing")
    assert ask(sume, "/v1/jobs/job_1/result").status_code == 409


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}])
def test_api_key_is_checked(sume: Sume, header: dict[str, str]) -> None:
    """Without the right key everything is 401."""
    sume.add_job("job_1")
    assert httpx.get(f"{sume.api_url}/v1/jobs/job_1/status", headers=header).status_code == 401


def test_overrides_are_used_up_in_order(sume: Sume) -> None:
    """An override answers one question as often as it was told, then the next one, then the truth."""
    sume.add_job("job_1")
    sume.override("job_1", Answer.error(429, "slow_down", retry_after="7"), question="status", times=2)
    sume.override("job_1", Answer.html(502), question="status", times=1)
    answers = [ask(sume, "/v1/jobs/job_1/status") for _ in range(4)]
    assert [a.status_code for a in answers] == [429, 429, 502, 200]
    assert answers[0].headers["retry-after"] == "7"
    assert answers[0].json()["error"]["retryable"] is True
    assert ask(sume, "/v1/jobs/job_1/result").status_code == 200


def test_answers_can_be_nonsense(sume: Sume) -> None:
    """JSON may end in its middle, the body may break off, and another job may be named."""
    sume.override("job_1", Answer.truncated(), times=1)
    sume.override("job_1", Answer.broken_off(), times=1)
    with pytest.raises(ValueError, match="Unterminated"):
        ask(sume, "/v1/jobs/job_1/status").json()
    with pytest.raises(httpx.RemoteProtocolError):
        ask(sume, "/v1/jobs/job_1/status")
    sume.add_job("job_2", answers_as="job_3")
    assert ask(sume, "/v1/jobs/job_2/status").json()["data"]["job"]["id"] == "job_3"


def test_answer_can_be_held(sume: Sume) -> None:
    """A held answer comes when it is let go."""
    gate = threading.Event()
    sume.override("job_1", Answer.data({}, held=gate))
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(
            f"{sume.api_url}/v1/jobs/job_1/status", headers={"Authorization": f"Bearer {sume.api_key}"}, timeout=0.2
        )
    gate.set()
    assert ask(sume, "/v1/jobs/job_1/status").status_code == 200


def test_requests_are_recorded(sume: Sume) -> None:
    """Look-ups can be counted and their headers read."""
    sume.add_job("job_1")
    ask(sume, "/v1/jobs/job_1/status")
    sume.api_requests.wait_for("/v1/jobs/job_1/status")
    assert sume.api_requests.count("/v1/jobs/job_1/status", method="GET") == 1
    assert sume.api_requests.count("/v1/jobs/job_1/result") == 0
    assert sume.api_requests.all()[0].headers["authorization"] == f"Bearer {sume.api_key}"


def test_stopped_one_is_away_and_comes_back(sume: Sume) -> None:
    """A stopped Sume ends open connections and refuses new ones; started again it answers on the same port."""
    sume.add_job("job_1")
    with socket.create_connection(("127.0.0.1", int(sume.api_url.rpartition(":")[2])), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"401" in connection.recv(4096)
        sume.stop()
        while connection.recv(4096):
            continue
    with pytest.raises(httpx.ConnectError):
        ask(sume, "/v1/jobs/job_1/status")
    sume.start()
    assert ask(sume, "/v1/jobs/job_1/status").status_code == 200
