"""Puts the receiver together: settings, store, queue, app."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from importlib.metadata import version

from fastapi import FastAPI
from starlette.routing import Route

from api.checks import Checks
from api.claim_writers import ClaimWriters
from api.drainer import Drainer
from api.error_handlers import answer_errors_in_one_shape
from api.gauges import GaugeReader
from api.group_commit import GroupCommit
from api.guard import OperatorApiOff
from api.health import Probe, health_routes
from api.journal import Journal
from api.lane import Lane
from api.openapi import ReceiverApp
from api.operator import Operator, operator_routes
from api.readiness import Readiness
from api.tally import Tally
from api.watch import SchedulerWatch
from api.webhook import Webhook
from shared import clock
from shared.alerts import open_alerts
from shared.claims import open_store
from shared.claims.store import Store
from shared.config import Settings
from shared.intake import Intake
from shared.logs import get_logger, written_once_a_turn
from shared.metrics import Metrics
from shared.queue import LoopQueue, Queue, open_queue
from shared.views import secret_tags

PATIENCE_SHARE = 0.6
"""A statement may take this much of the request's time, so that the database's own answer comes first."""
DRAIN_WITHIN = timedelta(seconds=1.5)
COUNT_WITHIN = timedelta(seconds=1)


def create_app(
    settings: Settings, *, store: Store | None = None, queue: Queue | None = None, metrics: Metrics | None = None
) -> ReceiverApp:
    """Return the receiver; nothing is connected before it is needed, so a database that is away stops nothing."""
    time_limit = settings.seconds("webhook_timeout")
    # Two pools: no question of an operator, however slow, takes a connection from the claims.
    claims = store or open_store(settings, patience=PATIENCE_SHARE * time_limit)
    answers = store or open_store(settings)
    queue = queue or open_queue(settings)
    metrics = metrics or Metrics()
    drainer = Drainer(LoopQueue(settings), metrics=metrics)
    intake = Intake(claims, drainer)
    writers = ClaimWriters(
        intake.claim,
        follow=intake.follow,
        open_connection=claims.open_claim_connection,
        interrupt=claims.interrupt,
        metrics=metrics,
        time_limit=time_limit,
    )
    group_commit = GroupCommit(writers, time_limit=time_limit)
    records = Lane("record-writer", threads=2, capacity=256)
    questions = Lane("operator", threads=4, capacity=64)
    tally = Tally(claims, lane=records, within=COUNT_WITHIN)
    database, redis = Probe("database", claims.check), Probe("redis", queue.ping)
    watch = SchedulerWatch(answers, open_alerts(settings, answers))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        drainer.start()
        if not settings.signing_secrets:
            get_logger().error("signing_secret.missing", problem="every delivery is answered 500 until it is set")
        readiness = Readiness({"database": database, "redis": redis})
        duties = (tally.write_forever(), watch.look_forever(), readiness.tell_forever())
        periodic = [asyncio.create_task(duty) for duty in duties]
        with written_once_a_turn(asyncio.get_running_loop().call_soon):
            yield
        for task in periodic:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        # No request is left: everything that was answered 2xx is committed, and only messages and counts remain.
        await asyncio.gather(drainer.close(within=DRAIN_WITHIN), tally.write(), database.finish(), redis.finish())
        for closing in (writers, records, questions, database, redis, watch, claims, answers, queue):
            closing.close()

    webhook = Webhook(
        settings,
        checks=Checks(settings, unix_seconds=clock.unix_seconds),
        store=claims,
        group_commit=group_commit,
        lane=records,
        journal=Journal(tally=tally, metrics=metrics),
    )
    app = ReceiverApp(
        settings,
        webhook=webhook,
        title="sume-jobs",
        version=version("sume-jobs"),
        lifespan=lifespan,
        docs_url=None,  # both load scripts from a CDN
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.include_router(
        health_routes(
            database=database,
            redis=redis,
            secret_configured=bool(settings.signing_secrets),
            metrics=metrics,
            gauges=GaugeReader(answers, queue, lane=questions, secret_tags=secret_tags(settings)),
        )
    )
    if settings.ops_token is None:
        app.router.routes.append(Route("/v1/{rest:path}", OperatorApiOff(), include_in_schema=False))
    token = settings.ops_token.get_secret_value().encode() if settings.ops_token else b""
    operator = Operator(settings, answers, intake, queue, questions)
    app.include_router(operator_routes(operator, token=token))
    answer_errors_in_one_shape(app)
    return app
