"""What `send` promises."""

import io
import json
import sys
from pathlib import Path

import pytest

from shared.sume.payload import parse_delivery
from shared.sume.signature import sign
from tests.cli.conftest import Cli
from tests.cli.receiver import Receiver, receiving
from tests.conftest import SIGNING_SECRET

BODY = b'{"event": "job.completed",\r\n "job_id": "job_a", "name": "\xc3\xa9\\u00e9"}\n\n'


@pytest.fixture
def signing_cli(bare_cli: Cli) -> Cli:
    """The commands with a signing secret alone."""
    bare_cli.set(sume_com_webhook_signing_secret=f" {SIGNING_SECRET} , older-secret")
    return bare_cli


def signed_with(secret: str, receiver: Receiver, number: int = 0) -> bool:
    """Whether a request was signed over its exact bytes and timestamp."""
    headers, body = receiver.headers[number], receiver.bodies[number]
    wanted = sign(secret.encode(), timestamp=headers["X-Sume-Timestamp"], body=body)
    return bool(headers["X-Sume-Signature"] == wanted)


def test_a_file_is_sent_byte_for_byte(signing_cli: Cli, tmp_path: Path) -> None:
    """Signed with the first secret; the status code is all there is on stdout."""
    (tmp_path / "body.json").write_bytes(BODY)
    with receiving(204) as receiver:
        ran = signing_cli("send", "body.json", "--url", receiver.url)
    assert (ran.code, ran.out, ran.err) == (0, "204\n", "")
    assert receiver.bodies == [BODY]
    assert signed_with(SIGNING_SECRET, receiver)


def test_a_dash_reads_stdin(signing_cli: Cli) -> None:
    """For pipes."""
    with receiving(204) as receiver, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BODY)))
        assert signing_cli("send", "-", "--url", receiver.url).code == 0
    assert receiver.bodies == [BODY]


def test_every_delivery_is_counted_and_one_refusal_fails(signing_cli: Cli) -> None:
    """Three times the same bytes; each code is printed; the refusal is explained on stderr."""
    with receiving(204, 401, 204) as receiver:
        ran = signing_cli("send", "--times", "3", "--url", receiver.url)
    assert (ran.code, ran.out) == (1, "204\n401\n204\n")
    assert "error: 401 bad_signature: Compare the secrets." in ran.err
    assert len(set(receiver.bodies)) == 1
    assert len(receiver.bodies) == 3


def test_a_secret_and_a_timestamp_can_be_given(bare_cli: Cli) -> None:
    """Without any setting, for trying out what is refused; neither secret nor signature is printed."""
    with receiving(401) as receiver:
        ran = bare_cli("send", "--secret", "other-secret", "--timestamp", "12", "--url", receiver.url)
    assert ran.code == 1
    assert receiver.headers[0]["X-Sume-Timestamp"] == "12"
    assert signed_with("other-secret", receiver)
    for hidden in ("other-secret", receiver.headers[0]["X-Sume-Signature"]):
        assert hidden not in ran.out + ran.err


def test_header_names_are_settings(signing_cli: Cli) -> None:
    """As the receiver reads them."""
    signing_cli.set(sume_signature_header="X-Other", sume_timestamp_header="X-When")
    with receiving(204) as receiver:
        signing_cli("send", "--url", receiver.url)
    assert receiver.headers[0]["X-Other"].startswith("v1=")
    assert receiver.headers[0]["X-When"].isdigit()


@pytest.mark.parametrize("event", ["job.completed", "job.failed", "job.canceled"])
def test_a_sample_is_an_event_of_a_fresh_job(signing_cli: Cli, event: str) -> None:
    """Its body is one the receiver claims, and the job is told so that it can be shown."""
    with receiving(204) as receiver:
        runs = [signing_cli("send", "--event", event, "--url", receiver.url) for _ in range(2)]
    claims = [parse_delivery(body) for body in receiver.bodies]
    ids = [claim.job_id for claim in claims if hasattr(claim, "job_id")]
    assert len(set(ids)) == 2
    assert f"sume-jobs show {ids[0]}" in runs[0].err
    assert [json.loads(body)["event"] for body in receiver.bodies] == [event, event]


def test_a_sample_can_be_of_a_job_and_list_files(signing_cli: Cli) -> None:
    """Without URLs it has no list at all, so that the worker asks for one."""
    url = "http://127.0.0.1:1/a.png?signed=1"
    with receiving(204) as receiver:
        signing_cli("send", "--job-id", "job_a", "--artifact-url", url, "--url", receiver.url)
        signing_cli("send", "--job-id", "job_a", "--url", receiver.url)
    listed, bare = (json.loads(body) for body in receiver.bodies)
    assert listed["result"]["artifacts"] == [{"url": url}]
    assert (bare["job_id"], "result" in bare) == ("job_a", False)


def test_a_test_event_names_no_job(signing_cli: Cli) -> None:
    """As Sume's own test does."""
    with receiving(204) as receiver:
        ran = signing_cli("send", "--event", "webhook.test", "--url", receiver.url)
    assert json.loads(receiver.bodies[0]) == {"event": "webhook.test"}
    assert ran.err == ""


def test_a_receiver_that_is_away_is_one_line(signing_cli: Cli) -> None:
    """Host and port are named; a user in the URL is not."""
    ran = signing_cli("send", "--url", "http://me:hunter22@127.0.0.1:1/hook?token=hunter22")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: no answer from 127.0.0.1:1 ")
    assert ran.err.count("\n") == 1
    assert "hunter22" not in ran.err


def test_no_proxy_is_asked(signing_cli: Cli) -> None:
    """A developer's proxy does not know the developer's loopback."""
    signing_cli.set(http_proxy="http://127.0.0.1:1", no_proxy=None)
    with receiving(204) as receiver:
        assert signing_cli("send", "--url", receiver.url).code == 0
