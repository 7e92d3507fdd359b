"""Liveness, readiness, metrics and the OpenAPI document."""

from typing import Any

import pytest
from fastapi import FastAPI

from api.gauges import GaugeReader
from api.lane import Lane
from shared.claims import open_store
from shared.claims.records import Stats
from shared.config import Settings
from shared.queue import Queue
from tests.api.harness import UNREACHABLE_DATABASE, UNREACHABLE_REDIS, body_of, call, deliver, receiving, run
from tests.conftest import MakeSettings


async def get(app: FastAPI, path: str) -> Any:
    """Return status and parsed body."""
    answer = await call(app, "GET", path)
    return answer.status, answer.json


@pytest.fixture
def settings(make_settings: MakeSettings, database_url: str, redis_url: str) -> Settings:
    """Settings with both servers."""
    return make_settings(database_url=database_url, redis_url=redis_url)


def test_ready_means_that_claims_can_be_stored(settings: Settings) -> None:
    """With everything there it is ready; without Redis too, which is reported and not required."""

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await get(app, "/readyz")) == (
                200,
                {"ready": True, "parts": {"database": "ok", "signing_secret": "ok", "redis": "ok"}},
            )
        without_redis = settings.model_copy(update={"redis_url": Settings.load(redis_url=UNREACHABLE_REDIS).redis_url})
        async with receiving(without_redis) as app:
            status, body = await get(app, "/readyz")
            assert (status, body["ready"], body["parts"]["database"]) == (200, True, "ok")
            assert body["parts"]["redis"].startswith("Redis")

    run(story)


def test_without_a_secret_or_a_database_it_is_not_ready(make_settings: MakeSettings, database_url: str) -> None:
    """Each missing part is named, and the process lives on."""

    async def story() -> None:
        no_secret = make_settings(
            database_url=database_url, redis_url=UNREACHABLE_REDIS, sume_com_webhook_signing_secret=()
        )
        async with receiving(no_secret) as app:
            status, body = await get(app, "/readyz")
            assert (status, body["ready"]) == (503, False)
            assert body["parts"]["signing_secret"] == "SUME_COM_WEBHOOK_SIGNING_SECRET is not set"
        no_database = make_settings(database_url=UNREACHABLE_DATABASE, redis_url=UNREACHABLE_REDIS)
        async with receiving(no_database) as app:
            status, body = await get(app, "/readyz")
            assert (status, body["ready"], body["parts"]["signing_secret"]) == (503, False, "ok")
            assert body["parts"]["database"].startswith("PostgreSQL")
            assert (await get(app, "/livez"))[0] == 200

    run(story)


def test_metrics_count_what_happened(settings: Settings) -> None:
    """Deliveries by result, claims, batches and the gauges of the store are there, and no series names a job."""

    async def story() -> None:
        async with receiving(settings) as app:
            for _ in range(2):
                await deliver(app, body_of("job_named"))
            await deliver(app, body_of("job_named"), headers=[])
            text = (await call(app, "GET", "/metrics")).body.decode()
        for line in (
            'sume_deliveries_total{code="accepted"} 2.0',
            'sume_deliveries_total{code="missing_signature"} 1.0',
            'sume_claims_total{kind="new"} 1.0',
            'sume_claims_total{kind="duplicate"} 1.0',
            "sume_conflicts_total 0.0",
            "sume_claim_batch_size_count 2.0",
            "sume_claim_commit_seconds_count 2.0",
            "sume_messages_dropped_total 0.0",
            'sume_jobs{state="claimed"} 1.0',
        ):
            assert line in text.splitlines()
        assert "sume_queue_depth " in text
        assert "sume_oldest_waiting_seconds " in text
        assert "job_named" not in text

    run(story)


def test_many_scrapes_cause_one_read_of_the_table(settings: Settings) -> None:
    """Gauges are answered from memory while they are fresh."""
    store, queue = open_store(settings), Queue(settings)
    reads: list[None] = []

    class Counting:
        """Counts how often the whole table is read."""

        def stats(self) -> Stats:
            """Read."""
            reads.append(None)
            return store.stats()

    async def story() -> None:
        lane = Lane("test", threads=1, capacity=4)
        reader = GaugeReader(Counting(), queue, lane=lane)
        for _ in range(20):
            assert (await reader.read()).stats is not None
        lane.close()

    run(story)
    store.close()
    queue.close()
    assert len(reads) == 1


def test_the_document_describes_every_endpoint(settings: Settings) -> None:
    """OpenAPI has the webhook with its headers and answers, and everything else; no page loads foreign scripts."""

    async def story() -> None:
        async with receiving(settings) as app:
            _, document = await get(app, "/openapi.json")
            for path in ("/docs", "/redoc"):
                assert (await call(app, "GET", path)).status == 404
        assert set(document["paths"]) == {
            "/webhooks/sume", "/livez", "/readyz", "/metrics", "/v1/jobs", "/v1/jobs/{job_id}",
            "/v1/jobs/{job_id}/requeue", "/v1/stats",
        }  # fmt: skip
        webhook = document["paths"]["/webhooks/sume"]["post"]
        assert {header["name"] for header in webhook["parameters"]} == {"X-Sume-Signature", "X-Sume-Timestamp"}
        assert set(webhook["responses"]) == {"204", "400", "401", "405", "408", "413", "415", "500", "503"}
        assert "Retry-After" in webhook["responses"]["503"]["headers"]
        assert document["paths"]["/v1/stats"]["get"]["security"] == [{"OPS_TOKEN": []}]

    run(story)
