"""The bodies we write are read back as what they were made of."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.event import EVENT_NAMES, Artifact, Event, EventName
from shared.sume.artifacts import artifacts
from shared.sume.envelope import build_body, build_polled_body, build_polled_event
from shared.sume.payload import Ping, parse_delivery

ARTIFACTS = [
    Artifact(0, "https://media.sume.com/é?x=%2f", "image", "image/png", "ü.png", 0, "ab" * 32),
    Artifact(1, ""),
]


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_a_polled_event_is_what_its_payload_says(name: EventName) -> None:
    """Reading the stored payload gives the same event and artifacts, so a poll's claim is like a webhook's."""
    event = build_polled_event("job_demo", event=name, status_url="https://a/s", error=None, artifacts=ARTIFACTS)
    read = parse_delivery(event.payload.encode())
    assert isinstance(read, Event)
    assert (read.job_id, read.name, read.status, read.status_url) == ("job_demo", name, event.status, "https://a/s")
    assert read.conflict is None
    assert event.source == "poll"
    assert json.loads(event.payload)["source"] == "poll"
    assert artifacts(event.payload) == ARTIFACTS


def test_a_polled_error_is_kept_in_the_event_and_its_payload() -> None:
    """A handler finds the keys that a webhook has, and the line survives being written and read."""
    error = {"code": "nsfw", "message": "Refused", "public_reason": "policy"}
    event = build_polled_event("job_demo", event="job.failed", error=error)
    assert json.loads(event.payload)["error"] == error
    assert event.error == "nsfw: Refused (policy)"
    assert parse_delivery(event.payload.encode()) == Event(
        "job_demo", "job.failed", "ERROR", event.payload, error=event.error
    )


def test_an_unknown_list_is_left_out_and_an_empty_one_is_not() -> None:
    """Whether the artifacts are known can be told from the payload."""
    assert artifacts(build_polled_body("job_demo", event="job.completed")) is None
    assert artifacts(build_polled_body("job_demo", event="job.completed", artifacts=[])) == []


def test_a_sample_is_a_delivery() -> None:
    """What `sume-jobs send` posts is what Sume would, a test without a job_id included."""
    assert json.loads(build_body("job_demo", event="job.failed", error={"message": "boo"})) == {
        "event": "job.failed",
        "job_id": "job_demo",
        "status": "ERROR",
        "error": {"message": "boo"},
    }
    assert parse_delivery(build_body(None, event="webhook.test")) == Ping()
    assert json.loads(build_body("job_demo", event="job.unheard")) == {"event": "job.unheard", "job_id": "job_demo"}


@given(st.lists(st.builds(Artifact, index=st.just(0), url=st.text(), filename=st.text())))
def test_any_artifact_can_be_written(listed: list[Artifact]) -> None:
    """Names and URLs in any script come back unchanged."""
    read = artifacts(build_polled_body("job_demo", event="job.completed", artifacts=listed))
    assert read is not None
    assert [(a.url, a.filename) for a in read] == [(a.url, a.filename) for a in listed]
