"""Genuine deliveries on a real database and a real queue: what is stored, counted, enqueued and answered."""

import asyncio
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from shared.config import Settings
from shared.queue import Queue
from tests.api.harness import UNREACHABLE_DATABASE, body_of, deliver, receiving, run, signed
from tests.conftest import MakeSettings


@pytest.fixture
def settings(make_settings: MakeSettings, database_url: str, redis_url: str) -> Settings:
    """Settings with both servers."""
    return make_settings(database_url=database_url, redis_url=redis_url)


def rows(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    """Return what the database holds."""
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        return connection.execute(query.encode()).fetchall()


def queued(settings: Settings) -> list[str]:
    """Return the job_ids that wait in Redis."""
    queue = Queue(settings)
    try:
        return sorted(queue.waiting_ids())
    finally:
        queue.close()


def test_two_deliveries_of_one_body_are_one_job(settings: Settings) -> None:
    """Both are answered 204; one row holds the exact body and counts two; one message is sent."""
    body = "\ufeff".encode() + body_of(note="\u00fc", status_url="https://api.open.sume.com/v1/jobs/job_demo/status")

    async def story() -> None:
        async with receiving(settings) as app:
            answers = [await deliver(app, body) for _ in range(2)]
        assert [(answer.status, answer.body) for answer in answers] == [(204, b"")] * 2

    run(story)
    query = "SELECT job_id, state, event, status, deliveries, source, payload, status_url FROM sume_jobs"
    (row,) = rows(settings, query)
    assert row[:6] == ("job_demo", "claimed", "job.completed", "OK", 2, "webhook")
    assert row[6].encode() == body
    assert row[7] == "https://api.open.sume.com/v1/jobs/job_demo/status"
    counted = dict(rows(settings, "SELECT name, count FROM sume_counters WHERE name NOT LIKE 'secret:%'"))
    assert counted == {"accepted": 2, "redelivered": 1}
    assert queued(settings) == ["job_demo"]


def test_fifty_at_once_are_one_job(settings: Settings) -> None:
    """Fifty concurrent deliveries are all answered 204, counted, and new exactly once."""
    body = body_of()

    async def story() -> None:
        with capture_logs() as lines:
            async with receiving(settings) as app:
                answers = await asyncio.gather(*(deliver(app, body) for _ in range(50)))
        assert [answer.status for answer in answers] == [204] * 50
        accepted = [line for line in lines if line["event"] == "delivery.accepted"]
        assert max(line["deliveries"] for line in accepted) == 50
        assert [line["new"] for line in accepted].count(True) == 1
        assert len(accepted) == 50

    run(story)
    assert rows(settings, "SELECT deliveries FROM sume_jobs") == [(50,)]
    assert queued(settings) == ["job_demo"]


@pytest.mark.parametrize(
    ("event", "status", "kept", "conflict"),
    [
        ("job.completed", None, "OK", False),
        ("job.failed", None, "ERROR", False),
        ("job.canceled", "ERROR", "ERROR", False),
        ("job.completed", "ERROR", "ERROR", True),
        ("job.failed", "OK", "OK", True),
        ("job.failed", "maybe", "ERROR", False),
    ],
)
def test_a_stated_status_decides(
    event: str, status: str | None, kept: str, *, conflict: bool, settings: Settings
) -> None:
    """The event fills a missing status; a stated one decides, and is a conflict where it contradicts the event."""
    body = body_of(event=event) if status is None else body_of(event=event, status=status)

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await deliver(app, body)).status == 204

    run(story)
    query = "SELECT event, status, conflict_with IS NOT NULL FROM sume_jobs"
    assert rows(settings, query) == [(event, kept, conflict)]


def test_another_event_for_a_known_job_counts_and_is_warned_of(settings: Settings) -> None:
    """The first event stays; a later one that contradicts it is counted, logged and marked."""

    async def story() -> None:
        with capture_logs() as lines:
            async with receiving(settings) as app:
                await deliver(app, body_of())
                assert (await deliver(app, body_of(event="job.failed"))).status == 204
        assert [line["log_level"] for line in lines if line["event"] == "claim.conflicted"] == ["warning"]

    run(story)
    assert rows(settings, "SELECT event, status, deliveries, conflict_with FROM sume_jobs") == [
        ("job.completed", "OK", 2, "job.failed")
    ]


@pytest.mark.parametrize(
    ("body", "status", "code", "reason"),
    [
        (b"{", 400, "invalid_json", "invalid_json"),
        (b"[]", 400, "invalid_json", "invalid_json"),
        (b'{"event": "job.completed", "job_id": "../up"}', 400, "invalid_job_id", "invalid_job_id"),
        (b'{"event": "job.completed", "job_id": "a", "job_id": "a"}', 400, "invalid_job_id", "invalid_job_id"),
        (b'{"event": "job.completed"}', 204, "", "no_job_id"),
        (b'{"event": "job.completed", "job_id": null}', 204, "", "no_job_id"),
        (b'{"event": "job.exploded", "job_id": "job_1"}', 204, "", "unknown_event"),
    ],
)
def test_what_cannot_be_claimed_is_quarantined(
    body: bytes, status: int, code: str, reason: str, settings: Settings
) -> None:
    """A genuine body that cannot be claimed is kept once with its count, and nothing is claimed."""

    async def story() -> None:
        async with receiving(settings) as app:
            for _ in range(2):
                answer = await deliver(app, body)
                assert (answer.status, answer.code) == (status, code)

    run(story)
    assert rows(settings, "SELECT reason, count, body FROM sume_quarantine") == [(reason, 2, body)]
    assert rows(settings, "SELECT count(*) FROM sume_jobs") == [(0,)]


def test_a_test_delivery_and_refusals_are_counted(settings: Settings) -> None:
    """A webhook.test stores no job; tests and refusals are in the counters after the shutdown at the latest."""
    ping = b'{"event": "webhook.test"}'

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await deliver(app, ping)).status == 204
            for _ in range(3):
                await deliver(app, ping, headers=signed(ping, secret="another"))

    run(story)
    counted = dict(rows(settings, "SELECT name, count FROM sume_counters WHERE name NOT LIKE 'secret:%'"))
    assert counted == {"accepted": 1, "refused:bad_signature": 3, "webhook.test": 1}
    detail = "SELECT detail FROM sume_counters WHERE detail IS NOT NULL"
    assert rows(settings, detail) == [("x-sume-signature, x-sume-timestamp",)]
    assert rows(settings, "SELECT count(*) FROM sume_jobs") == [(0,)]
    assert rows(settings, "SELECT count(*) FROM sume_quarantine") == [(0,)]


def test_a_refusal_names_headers_and_repeats_no_value(settings: Settings) -> None:
    """The log line of a refusal has the code and the names of the headers, and no value of one."""
    body = body_of()
    headers = [*signed(body, secret="another"), (b"x-private", b"planted-value"), (b"cookie", b"planted-value")]

    async def story() -> None:
        with capture_logs() as lines:
            async with receiving(settings) as app:
                await deliver(app, body, headers=headers)
        (line,) = [line for line in lines if line["event"] == "delivery.refused"]
        assert line["code"] == "bad_signature"
        assert line["headers"] == ["x-sume-signature", "x-sume-timestamp", "x-private", "cookie"]
        assert "planted-value" not in str(lines)
        assert headers[0][1].decode() not in str(lines)

    run(story)


@pytest.mark.parametrize("body", [body_of(), b"not JSON", b'{"event": "job.unknown", "job_id": "a"}'])
def test_without_a_database_nothing_is_answered_2xx(body: bytes, make_settings: MakeSettings, redis_url: str) -> None:
    """Where the claim or the quarantine cannot be written, the answer is 503 with Retry-After."""

    async def story() -> None:
        async with receiving(make_settings(database_url=UNREACHABLE_DATABASE, redis_url=redis_url)) as app:
            answer = await deliver(app, body)
        assert (answer.status, answer.code) == (503, "claim_not_stored")
        assert int(answer.headers[b"retry-after"]) > 0

    run(story)


def test_a_locked_row_is_answered_in_time_and_harms_no_other(settings: Settings) -> None:
    """A job whose row somebody holds locked is answered 503 within the limit; others are stored meanwhile."""
    settings = settings.model_copy(update={"webhook_timeout_seconds": 2.0})
    assert settings.database_url is not None

    async def story() -> None:
        async with receiving(settings) as app:
            await deliver(app, body_of("locked"))
            with psycopg.connect(str(settings.database_url and settings.database_url.get_secret_value())) as holder:
                holder.execute("SELECT 1 FROM sume_jobs WHERE job_id = 'locked' FOR UPDATE")
                names = ["locked", *(f"free-{number}" for number in range(20))]
                answers = await asyncio.gather(*(deliver(app, body_of(name)) for name in names))
        assert [answer.status for answer in answers] == [503] + [204] * 20

    run(story)
