"""The operator API on a real store: shapes, codes, and who may ask."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI

from shared.claims import open_store
from shared.claims.states import Reason
from shared.config import Settings
from shared.event import StoredArtifact
from shared.queue import Queue
from tests.api.harness import (
    UNREACHABLE_DATABASE,
    UNREACHABLE_REDIS,
    Answer,
    Headers,
    body_of,
    call,
    deliver,
    receiving,
    run,
)
from tests.conftest import MakeSettings

TOKEN = "operators-only"
ALLOWED: Headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
ARTIFACT = StoredArtifact(0, "job_demo/00-a.png", 3, "0" * 64, "image/png", "image")
JOB_KEYS = {
    "job_id", "state", "event", "status", "deliveries", "attempts", "source", "conflict", "error", "reason",
    "status_url", "first_seen", "last_seen", "updated_at", "next_look_at", "acknowledged_at", "artifacts", "timeline",
}  # fmt: skip


@pytest.fixture
def settings(make_settings: MakeSettings, database_url: str, redis_url: str) -> Settings:
    """Settings with both servers and a token."""
    return make_settings(database_url=database_url, redis_url=redis_url, ops_token=TOKEN)


async def ask(app: FastAPI, path: str, *, method: str = "GET", body: object = None) -> Answer:
    """Ask as an operator."""
    chunks = [b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()]
    return await call(app, method, path, headers=ALLOWED, chunks=chunks)


def with_app(settings: Settings, story: Callable[[FastAPI], Awaitable[None]]) -> None:
    """Run a story with a receiver."""

    async def whole() -> None:
        async with receiving(settings) as app:
            await story(app)

    run(whole)


def finish(settings: Settings, job_id: str, *, dead: bool = False) -> None:
    """Take a claimed job to its end, as a worker would."""
    store, token = open_store(settings), uuid4()
    try:
        assert store.take_lease(job_id, token=token, owner="test", lease=timedelta(minutes=1), max_attempts=8)
        if dead:
            assert store.bury(job_id, token=token, reason=Reason.DOWNLOAD_FAILED, error="gone")
        else:
            assert store.finish(job_id, [ARTIFACT], token=token, acknowledged=False)
    finally:
        store.close()


def test_a_job_is_shown_with_every_key_of_the_contract(settings: Settings) -> None:
    """A done job shows its artifacts and timeline; times are RFC 3339 in UTC."""

    async def story(app: FastAPI) -> None:
        await deliver(app, body_of())
        await asyncio.to_thread(finish, settings, "job_demo")
        job = (await ask(app, "/v1/jobs/job_demo")).json
        assert set(job) >= JOB_KEYS
        assert (job["state"], job["attempts"], job["conflict"]) == ("done", 1, False)
        assert job["artifacts"] == [
            {
                "index": 0, "type": "image", "content_type": "image/png", "bytes": 3, "sha256": "0" * 64,
                "path": "job_demo/00-a.png",
            }
        ]  # fmt: skip
        assert [entry["state"] for entry in job["timeline"]] == ["claimed", "running", "done"]
        assert job["first_seen"].endswith("Z")
        assert datetime.fromisoformat(job["first_seen"]).utcoffset() == timedelta(0)
        listed = (await ask(app, "/v1/jobs")).json
        assert listed["next_cursor"] is None
        assert set(listed["jobs"][0]) >= JOB_KEYS

    with_app(settings, story)


def test_the_document_describes_the_answers(settings: Settings) -> None:
    """OpenAPI's schemas of a job, a page and the statistics have exactly the keys that are answered."""

    async def story(app: FastAPI) -> None:
        await deliver(app, body_of())
        described = (await call(app, "GET", "/openapi.json")).json["components"]["schemas"]
        answers = {"JobRecord": "/v1/jobs/job_demo", "JobPage": "/v1/jobs", "Stats": "/v1/stats"}
        for schema, path in answers.items():
            assert set(described[schema]["properties"]) == set((await ask(app, path)).json)

    with_app(settings, story)


def test_a_list_is_filtered_and_paged(settings: Settings) -> None:
    """Filters narrow the list; following the cursor shows each job once."""

    async def story(app: FastAPI) -> None:
        for number in range(5):
            await deliver(app, body_of(f"job_{number}", event="job.failed" if number == 0 else "job.completed"))
        await deliver(app, body_of("job_1"))
        assert [job["job_id"] for job in (await ask(app, "/v1/jobs?status=ERROR")).json["jobs"]] == ["job_0"]
        assert [job["job_id"] for job in (await ask(app, "/v1/jobs?redelivered=true")).json["jobs"]] == ["job_1"]
        assert (await ask(app, "/v1/jobs?state=done")).json == {"jobs": [], "next_cursor": None}
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            path = "/v1/jobs?limit=2" + (f"&cursor={cursor}" if cursor else "")
            page = (await ask(app, path)).json
            seen += [job["job_id"] for job in page["jobs"]]
            cursor = page["next_cursor"]
        assert sorted(seen) == [f"job_{number}" for number in range(5)]

    with_app(settings, story)


def test_a_job_is_registered_once(settings: Settings) -> None:
    """An expected job is answered 201, and 200 when it is known; its first webhook is new."""

    async def story(app: FastAPI) -> None:
        wanted = {"job_id": "job_x", "status_url": "https://api.open.sume.com/v1/jobs/job_x/status?t=1"}
        first = await ask(app, "/v1/jobs", method="POST", body=wanted | {"due_in_seconds": 1.5})
        assert (first.status, first.json["state"], first.json["first_seen"]) == (201, "expected", None)
        assert first.json["status_url"] == "https://api.open.sume.com/v1/jobs/job_x/status?[secret]"
        assert (await ask(app, "/v1/jobs", method="POST", body={"job_id": "job_x"})).status == 200
        await deliver(app, body_of("job_x"))
        assert (await ask(app, "/v1/jobs/job_x")).json["state"] == "claimed"

    with_app(settings, story)


def test_requeue_opens_what_may_be_opened(settings: Settings) -> None:
    """A dead job is requeued and enqueued; an open one is not, a done one only with force, an unknown one is 404."""

    async def story(app: FastAPI) -> None:
        for job_id in ("dead", "done", "open"):
            await deliver(app, body_of(job_id))
        await asyncio.to_thread(finish, settings, "dead", dead=True)
        await asyncio.to_thread(finish, settings, "done")

        async def requeue(job_id: str, body: object = None) -> tuple[int, str]:
            answer = await ask(app, f"/v1/jobs/{job_id}/requeue", method="POST", body=body)
            return answer.status, answer.json.get("state") or answer.code

        assert await requeue("dead") == (202, "claimed")
        assert await requeue("dead") == (409, "not_dead")
        assert await requeue("open", {"force": True}) == (409, "not_dead")
        assert await requeue("done") == (409, "not_dead")
        assert await requeue("done", {"force": True}) == (202, "claimed")
        assert await requeue("unknown") == (404, "unknown_job")

    with_app(settings, story)
    queue = Queue(settings)
    assert queue.depth() == 5  # three deliveries, two requeues
    queue.close()


def test_stats_have_every_key_of_the_contract(settings: Settings) -> None:
    """Statistics count what is stored, say how deep the queue is and why polling is off."""

    async def story(app: FastAPI) -> None:
        for body in (body_of(), body_of(), body_of(event="job.failed")):
            await deliver(app, body)
        stats = (await ask(app, "/v1/stats")).json
        assert stats["states"] == {"expected": 0, "claimed": 1, "running": 0, "done": 0, "dead": 0}
        assert (stats["redelivered"], stats["conflicts"], stats["quarantined"]) == (1, 1, 0)
        assert (stats["refused"], stats["last_test_at"]) == ({}, None)
        assert stats["polling"] == "SUME_API_KEY is not set"
        assert stats["unacknowledged"] == 0
        assert stats["oldest_waiting_seconds"] >= 0
        assert stats["queue_depth"] in {0, 1}  # the drainer may still have it

    with_app(settings, story)


BAD_INPUT: list[tuple[str, str, Any]] = [
    ("GET", "/v1/jobs?state=lost", None),
    ("GET", "/v1/jobs?status=FINE", None),
    ("GET", "/v1/jobs?limit=0", None),
    ("GET", "/v1/jobs?limit=501", None),
    ("GET", "/v1/jobs?limit=ten", None),
    ("GET", "/v1/jobs?redelivered=perhaps", None),
    ("GET", "/v1/jobs?cursor=nonsense", None),
    ("GET", "/v1/jobs?cursor=W10", None),
    ("GET", "/v1/jobs/-job", None),
    ("GET", "/v1/jobs/" + "x" * 129, None),
    ("POST", "/v1/jobs", None),
    ("POST", "/v1/jobs", b"{"),
    ("POST", "/v1/jobs", b"\xff"),
    ("POST", "/v1/jobs", []),
    ("POST", "/v1/jobs", {}),
    ("POST", "/v1/jobs", {"job_id": 7}),
    ("POST", "/v1/jobs", {"job_id": "-job"}),
    ("POST", "/v1/jobs", {"job_id": "a", "due_in_seconds": -1}),
    ("POST", "/v1/jobs", {"job_id": "a", "due_in_seconds": "5"}),
    ("POST", "/v1/jobs", b'{"job_id": "a", "due_in_seconds": 1e999}'),
    ("POST", "/v1/jobs", {"job_id": "a", "due_in": 5}),
    ("POST", "/v1/jobs", {"job_id": "a", "status_url": "https://elsewhere.example/v1/jobs/a/status"}),
    ("POST", "/v1/jobs", {"job_id": "a", "status_url": "http://api.open.sume.com/v1/jobs/a/status"}),
    ("POST", "/v1/jobs", {"job_id": "a", "status_url": "https://api.open.sume.com:444/v1/jobs/a/status"}),
    ("POST", "/v1/jobs", {"job_id": "a", "status_url": "https://user@api.open.sume.com/v1/jobs/a/status"}),
    ("POST", "/v1/jobs", {"job_id": "a", "status_url": ""}),
    ("POST", "/v1/jobs/a/requeue", {"force": "yes"}),
    ("POST", "/v1/jobs/a/requeue", b"nonsense"),
    ("POST", "/v1/jobs/-a/requeue", None),
]


def test_bad_input_is_422_in_the_shape_of_an_error(settings: Settings) -> None:
    """Whatever is wrong with the input, the answer says where, repeats no value, and changes nothing."""

    async def story(app: FastAPI) -> None:
        for method, path, body in BAD_INPUT:
            answer = await ask(app, path, method=method, body=body)
            assert (answer.status, answer.code) == (422, "invalid_input"), (method, path, body, answer)
            assert ": " in answer.json["error"]["message"]
        assert (await ask(app, "/v1/jobs")).json["jobs"] == []

    with_app(settings, story)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Bearer wrong")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Bearer \xff")],
        [(b"authorization", TOKEN.encode())],
        [(b"authorization", b"Basic " + TOKEN.encode())],
        ALLOWED * 2,
    ],
)
def test_without_the_token_nothing_is_told(headers: Headers, make_settings: MakeSettings) -> None:
    """Every endpoint answers 401 before it reads the input or the store."""
    settings = make_settings(database_url=UNREACHABLE_DATABASE, redis_url=UNREACHABLE_REDIS, ops_token=TOKEN)

    async def story(app: FastAPI) -> None:
        for method, path in (("GET", "/v1/jobs?limit=x"), ("GET", "/v1/stats"), ("POST", "/v1/jobs")):
            answer = await call(app, method, path, headers=headers, chunks=[b"{"])
            assert (answer.status, answer.code) == (401, "unauthorized")
            assert answer.headers[b"www-authenticate"] == b"Bearer"

    with_app(settings, story)


def test_without_a_token_configured_there_is_no_operator_api(make_settings: MakeSettings) -> None:
    """While OPS_TOKEN is unset everything below /v1 is 404, whatever is sent."""

    async def story(app: FastAPI) -> None:
        for method, path in (("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("DELETE", "/v1/stats"), ("GET", "/v1/x")):
            for headers in ([], [(b"authorization", b"Bearer ")]):
                assert (await call(app, method, path, headers=headers)).status == 404

    with_app(make_settings(database_url=UNREACHABLE_DATABASE, redis_url=UNREACHABLE_REDIS), story)


def test_without_a_database_the_operator_is_told_so(make_settings: MakeSettings) -> None:
    """A question that the store cannot answer is 503 with Retry-After."""
    settings = make_settings(database_url=UNREACHABLE_DATABASE, redis_url=UNREACHABLE_REDIS, ops_token=TOKEN)

    async def story(app: FastAPI) -> None:
        answer = await ask(app, "/v1/stats")
        assert (answer.status, answer.code) == (503, "store_unavailable")
        assert answer.headers[b"retry-after"]

    with_app(settings, story)
