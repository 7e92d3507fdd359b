"""Whether the receiver lives, is ready, and what it counts."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.answers import JsonResponse
from api.gauges import GaugeReader
from api.lane import Lane
from shared.errors import QueueUnavailableError, StoreUnavailableError
from shared.metrics import Metrics

ANSWER_WITHIN = timedelta(seconds=2)
KEEP_SECONDS = 1.0

Answers = dict[int | str, dict[str, Any]]
TEXT = {"type": "string"}
ALIVE = {"type": "object", "required": ["alive"], "properties": {"alive": {"const": True}}}
PARTS = {"database": TEXT, "signing_secret": TEXT, "redis": TEXT}
READY = {
    "type": "object",
    "required": ["ready", "parts"],
    "properties": {
        "ready": {"type": "boolean"},
        "parts": {"type": "object", "required": list(PARTS), "properties": PARTS},
    },
}


class Probe:
    """Asks one part whether it works, at most once a second and one question at a time, however many ask."""

    def __init__(self, name: str, check: Callable[[], None], *, within: timedelta = ANSWER_WITHIN) -> None:
        self._check = check
        self._within = within.total_seconds()
        self._lane = Lane(f"{name}-probe", threads=1, capacity=1)
        self._answer = "not asked yet"
        self._fresh_until = 0.0
        self._asking = asyncio.Lock()
        self._question: asyncio.Future[None] | None = None

    async def ask(self) -> str:
        """Return "ok" or what is wrong, within ANSWER_WITHIN."""
        async with self._asking:
            if time.monotonic() >= self._fresh_until:
                self._answer = await self._ask()
                self._fresh_until = time.monotonic() + KEEP_SECONDS
            return self._answer

    async def _ask(self) -> str:
        """Wait for a question's answer: a new one's, or that of the one that is still under way.

        Giving up on it, or being cancelled, ends the waiting alone: it holds a connection until it is answered.
        """
        if self._question is None or self._question.done():
            self._question = self._lane.submit(self._check)
            self._question.add_done_callback(asyncio.Future.exception)  # nobody may be waiting for it any more
        try:
            async with asyncio.timeout(self._within):
                await asyncio.shield(self._question)
        except TimeoutError:
            return f"no answer within {self._within:g} s"
        except (StoreUnavailableError, QueueUnavailableError) as error:
            return str(error)
        return "ok"

    async def finish(self) -> None:
        """Wait, as long as for any answer, for a question that is under way, so that its connection can be closed."""
        if self._question is not None:
            await asyncio.wait([self._question], timeout=self._within)

    def close(self) -> None:
        """Let its thread end."""
        self._lane.close()


def in_json(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Describe one answer for the document."""
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def health_routes(
    *, database: Probe, redis: Probe, secret_configured: bool, metrics: Metrics, gauges: GaugeReader
) -> APIRouter:
    """Return the endpoints for orchestrators and Prometheus."""
    router = APIRouter(tags=["health"])
    signing_secret = "ok" if secret_configured else "SUME_COM_WEBHOOK_SIGNING_SECRET is not set"

    @router.get("/livez", response_class=JsonResponse, responses={200: in_json(ALIVE, "It lives")})
    async def livez() -> JsonResponse:
        """Answer while the process runs."""
        return JsonResponse({"alive": True})

    ready_answers: Answers = {200: in_json(READY, "Ready"), 503: in_json(READY, "Not ready; each part says why")}

    @router.get("/readyz", response_class=JsonResponse, responses=ready_answers)
    async def readyz() -> JsonResponse:
        """Answer 200 when claims can be stored and a signing secret is set; Redis is reported, not required."""
        database_part, redis_part = await asyncio.gather(database.ask(), redis.ask())
        ready = database_part == "ok" and secret_configured
        parts = {"database": database_part, "signing_secret": signing_secret, "redis": redis_part}
        return JsonResponse({"ready": ready, "parts": parts}, status_code=200 if ready else 503)

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": TEXT}}}})
    async def prometheus() -> Response:
        """Show Prometheus what was counted; gauges are up to 15 seconds old."""
        return Response(metrics.render(await gauges.read()), media_type=CONTENT_TYPE_LATEST)

    return router
