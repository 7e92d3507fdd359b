"""The pages of rq-dashboard, taught to read JSON messages over one client of ours.

rq-dashboard 0.9 reads everything but its lists with RQ's default serializer, which is pickle: our messages break it,
and whoever may write to Redis could run code in it. It also makes a new client without a time limit for each request.
Its module has no other seams than the names replaced here.
"""

from typing import Any

from flask import Blueprint, current_app
from redis import Redis
from rq import Worker
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker
from rq_dashboard import web  # type: ignore[import-untyped]  # the package has no types

READING = frozenset(
    {
        "favicon",
        "job_info",
        "job_view",
        "jobs_overview",
        "list_jobs",
        "list_queues",
        "list_workers",
        "queues_overview",
        "static",
        "workers_overview",
    }
)
"""The endpoints that change nothing; the others delete, requeue (one by a mere GET) and empty queues."""
REGISTRIES = frozenset({"queued", "scheduled", "deferred", "started", "finished", "failed", "canceled"})


class JsonWorker(Worker):
    """A worker whose current job is read as JSON."""

    @classmethod
    def all(cls, connection: Redis | None = None, *_: Any, **__: Any) -> list[BaseWorker]:
        """Return all workers, as rq-dashboard asks for them."""
        return super().all(connection=connection, serializer=JSONSerializer)


class JsonJob(Job):
    """A message that is read as JSON."""

    @classmethod
    def fetch(cls, id: str, connection: Redis | None = None, *_: Any, **__: Any) -> Job:  # noqa: A002 - inherited
        """Return a message, as rq-dashboard asks for it."""
        return super().fetch(id, connection=connection, serializer=JSONSerializer)


def pages() -> Blueprint:
    """Return the blueprint; the app that registers it has its client as `app.redis_conn`."""
    web.config.serializer = JSONSerializer
    web.Worker = JsonWorker
    web.Job = JsonJob
    web.from_url = lambda *_, **__: (None, current_app.redis_conn)  # type: ignore[attr-defined]  # rq-dashboard's own
    blueprint: Blueprint = web.blueprint
    return blueprint


def reads_only(endpoint: str | None, arguments: dict[str, Any] | None) -> bool:
    """Whether a request asks for a page or its data, of the one Redis there is."""
    name = (endpoint or "").removeprefix(f"{web.blueprint.name}.")
    values = arguments or {}
    registry = values.get("registry_name", "queued")
    return name in READING and values.get("instance_number", 0) == 0 and registry in REGISTRIES
