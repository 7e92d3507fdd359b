"""The operator API: what people and their tools ask and change over HTTP."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from fastapi import APIRouter, Request

from api.answers import JsonResponse, OperatorError
from api.guard import guarded_route
from api.lane import Lane
from api.operator_input import (
    Expectation,
    Listing,
    Requeue,
    body_schema,
    job_id_schema,
    query_schema,
    read_body_as,
    read_job_id,
    read_query_as,
)
from shared.claims.records import JobFilter, JobRecord
from shared.claims.store import Store
from shared.config import Settings
from shared.errors import QueueUnavailableError, StoreUnavailableError, UsageError
from shared.intake import Intake
from shared.queue import Queue
from shared.sume.origin import same_origin
from shared.views import job_view, page_view, stats_view

ANSWER_WITHIN = timedelta(seconds=20)
QUEUE_WITHIN = timedelta(seconds=2)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operator:
    """One method for each question; the store is asked in threads, bounded in number and time."""

    settings: Settings
    store: Store
    intake: Intake
    queue: Queue
    lane: Lane

    async def list_jobs(self, request: Request) -> JsonResponse:
        """List jobs, those that need a person first."""
        asked = read_query_as(Listing, request)
        wanted = JobFilter(
            state=asked.state,
            status=asked.status,
            redelivered=asked.redelivered,
            limit=asked.limit,
            cursor=asked.cursor,
        )
        try:
            return JsonResponse(page_view(await self._ask(partial(self.store.list_jobs, wanted))))
        except UsageError as error:
            raise OperatorError(422, "invalid_input", f"cursor: {error}") from error

    async def show_job(self, request: Request) -> JsonResponse:
        """Show one job with its artifacts and timeline."""
        return JsonResponse(job_view(await self._job(read_job_id(request))))

    async def expect_job(self, request: Request) -> JsonResponse:
        """Register a job whose webhook may never come; 200 when it is known already."""
        wanted = await read_body_as(Expectation, request)
        base_url = self.settings.sume_api_base_url
        if wanted.status_url is not None and not same_origin(wanted.status_url, base_url):
            raise OperatorError(422, "invalid_input", "status_url: must be of the origin of SUME_API_BASE_URL")
        due_in = self.settings.seconds("expect_due")
        if wanted.due_in_seconds is not None:
            due_in = timedelta(seconds=wanted.due_in_seconds)
        expect = partial(self.store.expect, wanted.job_id, status_url=wanted.status_url, due_in=due_in)
        registered = await self._ask(expect)
        return JsonResponse(job_view(await self._job(wanted.job_id)), status_code=201 if registered else 200)

    async def requeue_job(self, request: Request) -> JsonResponse:
        """Reopen a dead job; with force a done one whose details are not pruned."""
        job_id = read_job_id(request)
        wanted = await read_body_as(Requeue, request, empty=b"{}")
        done = await self._ask(partial(self.store.requeue, job_id, force=wanted.force))
        if done.outcome == "unknown":
            raise unknown_job(job_id)
        if done.outcome == "not_dead":
            advice = "; send force to run it again" if done.state == "done" and not wanted.force else ""
            raise OperatorError(409, "not_dead", f"The job is {done.state}, not dead{advice}.")
        if done.outcome == "pruned":
            raise OperatorError(409, "details_pruned", "The job is done and its details are pruned.")
        if done.message is not None:
            self.intake.enqueue([done.message])
        return JsonResponse(job_view(await self._job(job_id)), status_code=202)

    async def show_stats(self) -> JsonResponse:
        """Count everything."""
        counted = await self._ask(self.store.stats)
        depth = await self._queue_depth()
        return JsonResponse(stats_view(counted, queue_depth=depth, settings=self.settings))

    async def _ask(self, call: Callable[[], T]) -> T:
        return await self.lane.run(call, within=ANSWER_WITHIN)

    async def _job(self, job_id: str) -> JobRecord:
        job = await self._ask(partial(self.store.get_job, job_id))
        if job is None:
            raise unknown_job(job_id)
        return job

    async def _queue_depth(self) -> int | None:
        try:
            return await self.lane.run(self.queue.depth, within=QUEUE_WITHIN)
        except (QueueUnavailableError, StoreUnavailableError):
            return None  # shown as unknown: the statistics are about Postgres first


def unknown_job(job_id: str) -> OperatorError:
    """Return the answer about a job that is not in the store."""
    return OperatorError(404, "unknown_job", f"No job {job_id} is known.")


def operator_routes(operator: Operator, *, token: bytes) -> APIRouter:
    """Return the endpoints under /v1; the token is checked before anything else.

    They read path and query by themselves: for any parameter of an endpoint FastAPI loads pydantic's version 1, which
    nothing here uses (2.3 of 91 MB, and 3 % of the start).
    """
    router = APIRouter(prefix="/v1", tags=["operator"], route_class=guarded_route(token))
    add = partial(router.add_api_route, response_class=JsonResponse)
    add("/jobs", operator.list_jobs, methods=["GET"], openapi_extra=query_schema(Listing))
    add("/jobs", operator.expect_job, methods=["POST"], status_code=201, openapi_extra=body_schema(Expectation))
    add("/jobs/{job_id}", operator.show_job, methods=["GET"], openapi_extra=job_id_schema())
    requeue_extra = job_id_schema() | body_schema(Requeue, required=False)
    add(
        "/jobs/{job_id}/requeue",
        operator.requeue_job,
        methods=["POST"],
        status_code=202,
        openapi_extra=requeue_extra,
    )
    add("/stats", operator.show_stats, methods=["GET"])
    return router
