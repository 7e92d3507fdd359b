"""The receiver against generated deliveries: a documented answer to each, and the truth in the database."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from api.answers import REFUSALS
from shared.config import Settings
from shared.event import EVENT_NAMES
from tests.api.harness import Answer, call, receiving
from tests.conftest import MakeSettings
from tests.fuzz.budget import explore
from tests.fuzz.deliveries import Delivery, deliveries

BEFORE_THE_BODY = {"missing_signature", "bad_signature", "stale_timestamp", "body_too_large"}
AT_ONCE = 8
COUNTED = """
    SELECT (SELECT coalesce(sum(deliveries), 0) FROM sume_jobs), (SELECT coalesce(sum(count), 0) FROM sume_quarantine),
           (SELECT count(*) FROM sume_jobs WHERE state <> 'claimed' OR payload IS NULL)
"""


@pytest.fixture
def receiver_settings(make_settings: MakeSettings, database_url: str, redis_url: str) -> Settings:
    """Settings of a receiver with both servers, and patience for a busy machine."""
    return make_settings(
        database_url=database_url, redis_url=redis_url, webhook_max_bytes=100_000, webhook_timeout_seconds=20
    )


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all examples."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def app(receiver_settings: Settings, runner: asyncio.Runner) -> Iterator[FastAPI]:
    """A receiver that runs in that loop."""
    receiver = receiving(receiver_settings)
    yield runner.run(receiver.__aenter__())
    runner.run(receiver.__aexit__(None, None, None))


@pytest.mark.timeout(0)
def test_whatever_is_delivered(app: FastAPI, runner: asyncio.Runner, database_url: str) -> None:
    """No crash, no 5xx, nothing unsigned understood, and each 204 counted exactly where it belongs."""
    answered = {"claimed": 0, "kept": 0}

    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        phases=(Phase.generate,),  # an example is small as it is, and the database keeps what was sent while shrinking
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(deliveries(), min_size=1, max_size=AT_ONCE))
    def one_round(batch: list[Delivery]) -> None:
        async def send_all() -> list[Answer]:
            return list(await asyncio.gather(*(call(app, headers=d.headers, chunks=d.chunks) for d in batch)))

        for delivery, answer in zip(batch, runner.run(send_all()), strict=True):
            check(delivery, answer)
            if answer.status == 400:
                answered["kept"] += 1
            elif answer.status == 204 and not is_test(delivery.body):
                answered["claimed" if names_a_job(delivery.body) else "kept"] += 1

    with psycopg.connect(database_url, autocommit=True) as connection:
        explore(one_round)
        counted = connection.execute(COUNTED).fetchone()
    assert counted == (answered["claimed"], answered["kept"], 0)
    assert answered["claimed"]
    assert answered["kept"]


def check(delivery: Delivery, answer: Answer) -> None:
    """Hold one answer to the contract."""
    if answer.status == 204:
        assert delivery.genuine
        assert answer.body == b""
        return
    assert REFUSALS[answer.code] == answer.status < 500, (delivery, answer)
    assert set(answer.json["error"]) == {"code", "message"}
    assert (answer.code in BEFORE_THE_BODY) or delivery.genuine, (delivery, answer)
    assert not delivery.genuine or answer.code in {"invalid_json", "invalid_job_id", "body_too_large"}, (
        delivery,
        answer,
    )


def read(body: bytes) -> dict[str, Any]:
    """Return what a body says, read by Python alone; {} for what is no object."""
    try:
        document = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def is_test(body: bytes) -> bool:
    """Whether it is a `webhook.test`."""
    return read(body).get("event") == "webhook.test"


def names_a_job(body: bytes) -> bool:
    """Whether a body that was answered 204 is a claim."""
    document = read(body)
    return document.get("event") in [*EVENT_NAMES] and document.get("job_id") is not None
