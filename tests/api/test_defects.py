"""A defect of ours costs Sume an attempt, not the job, and a person can read of it."""

from datetime import timedelta
from typing import Any, cast

from structlog.testing import capture_logs

from api.checks import Checks
from api.group_commit import GroupCommit
from api.journal import Journal
from api.lane import Lane
from api.tally import Tally
from api.webhook import Webhook
from shared import clock
from shared.claims.records import ClaimResult
from shared.claims.store import ReceivingStore
from shared.event import Event
from shared.metrics import Gauges, Metrics
from tests.api.fakes import FakeCounters
from tests.api.harness import body_of, call, run, signed
from tests.conftest import MakeSettings


class BrokenCommit:
    """Fails in a way nobody foresaw."""

    async def claim(self, event: Event, *, deadline: float) -> ClaimResult:
        """Fail."""
        raise ZeroDivisionError(f"{event.job_id} until {deadline}")


def test_an_error_nobody_foresaw_is_answered_500_in_our_shape(make_settings: MakeSettings) -> None:
    """Sume delivers again after a 500; the log has the traceback, the answer has none of it."""
    settings, metrics = make_settings(), Metrics()
    lane = Lane("records", threads=1, capacity=1)
    webhook = Webhook(
        settings,
        checks=Checks(settings, unix_seconds=clock.unix_seconds),
        store=cast("ReceivingStore", None),
        group_commit=cast("GroupCommit", BrokenCommit()),
        lane=lane,
        journal=Journal(tally=Tally(FakeCounters(), lane=lane, within=timedelta(seconds=1)), metrics=metrics),
    )
    body = body_of()

    async def story() -> None:
        answer = await call(cast("Any", webhook), headers=signed(body), chunks=[body])
        assert (answer.status, answer.code) == (500, "internal_error")
        assert b"job_demo" not in answer.body

    with capture_logs() as lines:
        run(story)
    assert [line["event"] for line in lines] == ["delivery.failed"]
    assert b'sume_deliveries_total{code="internal_error"} 1.0' in metrics.render(Gauges())
