"""Deliveries, their signatures and their retries."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest

from shared.sandbox.sume import Answer, Request, Sume
from shared.sandbox.sume.listener import Exchange, Listener
from shared.sandbox.wheels import SandboxError
from shared.sume.signature import matches, parse_signatures
from tests.conftest import SIGNING_SECRET


class Receiver(Listener):
    """A receiver that answers the codes it is given in turn, then 204."""

    def __init__(self, *codes: int) -> None:
        super().__init__(self._receive)
        self.codes = list(codes)
        self.answer_after = 0
        """Answer nothing before so many requests have come."""

    def _receive(self, exchange: Exchange) -> None:
        self.requests.wait_for(exchange.request.path, times=self.answer_after)
        exchange.send(Answer(self.codes.pop(0) if self.codes else 204))


@pytest.fixture
def receiver(sume: Sume) -> Iterator[Receiver]:
    """A receiver that the simulated Sume delivers to."""
    receiver = Receiver()
    receiver.start()
    sume.webhook_url = f"{receiver.url}/webhooks/sume"
    yield receiver
    receiver.stop()


def is_genuine(request: Request, *, secret: bytes = SIGNING_SECRET.encode()) -> bool:
    """Whether a delivery carries the signature that the receiver wants."""
    signatures = parse_signatures(request.headers["x-sume-signature"].encode())
    timestamp = request.headers["x-sume-timestamp"].encode()
    return bool(matches([secret], timestamp=timestamp, body=request.body, signatures=signatures))


def test_completed_job(sume: Sume, receiver: Receiver) -> None:
    """A completed job is delivered once, signed, with its artifacts where Sume puts them."""
    sume.add_job("job_1", artifacts=[b"one", b"two"])
    assert sume.deliver("job_1") == [204]
    (request,) = receiver.requests.all("/webhooks/sume", method="POST")
    assert is_genuine(request)
    body = json.loads(request.body)
    assert (body["event"], body["job_id"], body["status"]) == ("job.completed", "job_1", "OK")
    assert body["status_url"] == f"{sume.api_url}/v1/jobs/job_1/status"
    assert [httpx.get(entry["url"]).content for entry in body["result"]["artifacts"]] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("outcome", "event"), [("failed", "job.failed"), ("nsfw", "job.failed"), ("canceled", "job.canceled")]
)
def test_error_events(sume: Sume, receiver: Receiver, outcome: str, event: str) -> None:
    """A job that went wrong is delivered as an ERROR without artifacts; only a cancel names no error."""
    sume.add_job("job_1", outcome=outcome)
    sume.deliver("job_1")
    body = json.loads(receiver.requests.all()[0].body)
    assert (body["event"], body["status"]) == (event, "ERROR")
    assert ("error" in body) == (outcome != "canceled")
    assert "result" not in body


@pytest.mark.parametrize(("listed_at", "keys"), [("artifacts", ["artifacts"]), ("data.result.artifacts", ["data"])])
def test_list_may_stand_elsewhere(sume: Sume, listed_at: str, keys: list[str]) -> None:
    """The artifact list stands where the job says."""
    body = json.loads(sume.add_job("job_1", artifacts=[b"one"], listed_at=listed_at).delivery_body())
    assert [key for key in body if key in {"artifacts", "data", "result"}] == keys
    for key in listed_at.split("."):
        body = body[key]
    assert len(body) == 1


def test_list_may_be_missing(sume: Sume) -> None:
    """An OK event may come without a list."""
    body = sume.add_job("job_1", artifacts=[b"one"], listed_at=None).delivery_body()
    assert b"artifacts" not in body


def test_retries_until_2xx(sume: Sume, receiver: Receiver) -> None:
    """Anything but a 2xx is attempted again with the same bytes, each time signed anew."""
    receiver.codes = [503, 401, 302]
    sume.add_job("job_1", artifacts=[b"one"])
    assert sume.deliver("job_1") == [204]
    assert sume.attempts("job_1") == [503, 401, 302, 204]
    assert len({request.body for request in receiver.requests.all()}) == 1
    assert all(is_genuine(request) for request in receiver.requests.all())


def test_gives_up_after_ten_attempts(sume: Sume, receiver: Receiver) -> None:
    """Sume makes ten attempts in all."""
    receiver.codes = [500] * 99
    sume.add_job("job_1")
    assert sume.deliver("job_1") == [500]
    assert sume.attempts("job_1") == [500] * 10


def test_no_receiver(sume: Sume, receiver: Receiver) -> None:
    """A receiver that is away counts as an attempt with no code."""
    receiver.stop()
    sume.add_job("job_1")
    assert sume.deliver("job_1") == [0]
    assert sume.attempts("job_1") == [0] * 10


def test_several_times(sume: Sume, receiver: Receiver) -> None:
    """The same event can be delivered several times and redelivered by hand."""
    sume.add_job("job_1")
    assert sume.deliver("job_1", times=2) == [204, 204]
    assert sume.redeliver("job_1") == 204
    assert receiver.requests.count() == 3


def test_at_once(sume: Sume, receiver: Receiver) -> None:
    """Deliveries at once are in flight together: here the first is answered when the last has come."""
    receiver.answer_after = 3
    sume.add_job("job_1")
    assert sume.deliver("job_1", times=3, at_once=True) == [204, 204, 204]


def test_stopping_ends_the_retries(receiver: Receiver) -> None:
    """A simulated Sume that is stopped makes no further attempt, however long it would still wait."""
    receiver.codes = [500] * 99
    with Sume(secret="s", webhook_url=f"{receiver.url}/hook", retry_wait=timedelta(hours=1)) as sume:
        sume.add_job("job_1")
        with ThreadPoolExecutor(1) as pool:
            delivery = pool.submit(sume.deliver, "job_1")
            receiver.requests.wait_for("/hook")
            sume.stop()
            assert delivery.result(20) == [500]
    assert sume.attempts("job_1") == [500]


def test_unfinished_job_is_not_delivered(sume: Sume, receiver: Receiver) -> None:
    """There is nothing to deliver before a job ends; once it has ended there is."""
    sume.add_job("job_1", outcome="processing")
    with pytest.raises(SandboxError, match="processing"):
        sume.deliver("job_1")
    sume.finish("job_1", outcome="failed")
    assert sume.deliver("job_1") == [204]
    assert receiver.requests.count() == 1


def test_own_failure_is_not_swallowed() -> None:
    """A listener that fails to answer says so when it is stopped, whatever its client made of it."""
    failing = Listener(lambda exchange: exchange.send(None))  # type: ignore[arg-type] # the failure wanted here
    failing.start()
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(failing.url)
    with pytest.raises(SandboxError) as caught:
        failing.stop()
    assert isinstance(caught.value.__cause__, AttributeError)


def test_test_delivery(sume: Sume, receiver: Receiver) -> None:
    """The test event is sent by hand and through the API, without a job_id."""
    assert sume.send_test() == 204
    response = httpx.post(
        f"{sume.api_url}/v1/webhooks/test-deliveries", headers={"Authorization": f"Bearer {sume.api_key}"}
    )
    assert response.json() == {"data": {"status_code": 204}}
    assert {request.body for request in receiver.requests.all()} == {b'{"event": "webhook.test"}'}
    sume.webhook_url = None
    response = httpx.post(
        f"{sume.api_url}/v1/webhooks/test-deliveries", headers={"Authorization": f"Bearer {sume.api_key}"}
    )
    assert response.status_code == 422


def test_any_body_can_be_posted(sume: Sume, receiver: Receiver) -> None:
    """Tests send what Sume never would, signed with any secret at any time."""
    assert sume.post(b"not json") == 204
    assert sume.post(b"not json", secret=b"other", timestamp="1", headers={"X-More": "yes"}) == 204
    first, second = receiver.requests.all()
    assert is_genuine(first)
    assert is_genuine(second, secret=b"other")
    assert (second.headers["x-sume-timestamp"], second.headers["x-more"]) == ("1", "yes")
