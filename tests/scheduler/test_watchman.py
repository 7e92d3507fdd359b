"""The watch notices what no job tells of, and says what to run."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.watchman import SLOW_LEAST, Watchman
from shared.claims.quarantine import QuarantinedBody, QuarantineEntry
from shared.claims.watch import IntakeFacts, Refusal, Role
from shared.errors import QueueUnavailableError
from tests.scheduler.fakes import NEVER

MINUTE = timedelta(minutes=1)
SOON = timedelta(seconds=3)


class World:
    """A store, a queue, people and a clock, as a test sets them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.facts = IntakeFacts(1, SOON, 0, ())
        self.worker: timedelta | None = SOON
        self.plain_workers: int | None = 0
        self.bodies: list[QuarantineEntry] = []
        self.told: dict[str, str] = {}
        self.digests = 0
        self.reached = True
        self.watchman = Watchman(self, self, self, monotonic=lambda: self.now)

    def watch(self) -> dict[str, str]:
        """Watch once; return what was told, by kind."""
        self.told = {}
        self.watchman.watch(NEVER)
        return self.told

    def tell(self, kind: str, title: str, body: str) -> bool:
        """See AppriseAlerts.tell."""
        self.told[kind] = f"{title}\n{body}"
        return self.reached

    def tell_held_back(self) -> None:
        """See AppriseAlerts.tell_held_back."""
        self.digests += 1

    def intake_facts(self) -> IntakeFacts:
        """See WatchStore.intake_facts."""
        return self.facts

    def silent_for(self, role: Role) -> timedelta | None:
        """See WatchStore.silent_for."""
        assert role == "worker"
        return self.worker

    def workers(self) -> int:
        """See Queue.workers."""
        if self.plain_workers is None:
            raise QueueUnavailableError("away")
        return self.plain_workers

    def untold_quarantine(self, *, limit: int) -> list[QuarantineEntry]:
        """See QuarantineStore.untold_quarantine."""
        return self.bodies[:limit]

    def mark_quarantine_told(self, quarantine_ids: Collection[int]) -> None:
        """See QuarantineStore.mark_quarantine_told."""
        self.bodies = [body for body in self.bodies if body.id not in quarantine_ids]

    def beat(self, role: Role, name: str) -> None:
        """Not the watch's to do."""
        raise AssertionError(role, name)

    def list_quarantine(self, *, replayed: bool, limit: int) -> list[QuarantineEntry]:
        """Not asked."""
        raise AssertionError(replayed, limit)

    def open_quarantine_ids(self) -> list[int]:
        """Not asked."""
        raise AssertionError

    def get_quarantined(self, quarantine_id: int) -> QuarantinedBody | None:
        """Not asked."""
        raise AssertionError(quarantine_id)

    def mark_replayed(self, quarantine_id: int) -> bool:
        """Not asked."""
        raise AssertionError(quarantine_id)


def refusal(code: str = "missing_signature", *, ago: timedelta = SOON) -> Refusal:
    """Return seven refusals."""
    return Refusal(code, 7, ago, "host, x-sume-sig")


def test_nothing_is_told_while_all_is_well() -> None:
    """But what was held back earlier is asked for at every watch."""
    world = World()
    world.now = 10_000
    assert world.watch() == {}
    assert world.digests == 1


@pytest.mark.parametrize(
    ("accepted_ago", "code", "refused_ago", "told"),
    [
        (None, "missing_signature", SOON, True),
        (10 * MINUTE, "bad_signature", SOON, True),
        (10 * MINUTE, "signing_secret_not_configured", 9 * MINUTE, True),
        (9 * MINUTE, "bad_signature", SOON, False),
        (20 * MINUTE, "bad_signature", 10 * MINUTE, False),
        (None, "method_not_allowed", SOON, False),
    ],
)
def test_refusals_with_nothing_accepted_are_told(
    accepted_ago: timedelta | None,
    code: str,
    refused_ago: timedelta,
    told: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """At once where nothing ever was accepted, else after ten minutes; a look at the URL is no delivery."""
    world = World()
    world.facts = IntakeFacts(0, accepted_ago, 0, (refusal(code, ago=refused_ago),))
    alert = world.watch().get("deliveries_refused", "")
    assert bool(alert) == told
    if told:
        assert f"{code}: 7 in all; headers of the last: host, x-sume-sig" in alert
        assert "sume-jobs stats" in alert


def test_redeliveries_show_that_the_endpoint_was_slow() -> None:
    """When a fifth of what ten minutes brought were repeats, and not just a few."""
    world = World()
    world.facts = IntakeFacts(1000, SOON, 900, ())
    assert world.watch() == {}, "what was before this scheduler says nothing about now"
    world.now, world.facts = 60, IntakeFacts(1002, SOON, 902, ())
    assert world.watch() == {}, "two repeats may be anybody's button"
    world.now, world.facts = 120, IntakeFacts(1000 + 5 * SLOW_LEAST, SOON, 900 + SLOW_LEAST, ())
    alert = world.watch()["redelivered"]
    assert f"{SLOW_LEAST} of the last {5 * SLOW_LEAST} deliveries" in alert
    assert "sume-jobs list --redelivered" in alert
    world.now, world.facts = 180, IntakeFacts(1001 + 5 * SLOW_LEAST, SOON, 900 + SLOW_LEAST, ())
    assert world.watch() == {}, "less than a fifth"
    world.now = 720
    assert world.watch() == {}, "ten minutes later they are over"


def test_bodies_in_quarantine_are_told_once() -> None:
    """With what they are and what to run; again only when nobody was reached."""
    world = World()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    world.bodies = [QuarantineEntry(n, "unknown_event", 3, 99, now, now, None) for n in range(1, 8)]
    world.reached = False
    assert "quarantined" in world.watch()
    world.reached = True
    alert = world.watch()["quarantined"]
    assert "7 signed deliveries" in alert
    assert "1: unknown_event, 99 bytes, came 3 times" in alert
    assert "and 2 more" in alert
    assert "sume-jobs quarantine show 1" in alert
    assert "sume-jobs quarantine replay --all" in alert
    assert world.watch() == {}


@pytest.mark.parametrize(
    ("silent", "plain", "told"),
    [
        (2 * MINUTE, 0, True),
        (None, 0, True),
        (2 * MINUTE, None, True),
        (2 * MINUTE - SOON, 0, False),
        (2 * MINUTE, 1, False),
        (None, 3, False),
    ],
)
def test_workers_that_are_silent_are_told_of(
    silent: timedelta | None,
    plain: int | None,
    told: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """After two minutes, and not while Redis knows of any, as it does of plain RQ's."""
    world = World()
    world.worker, world.plain_workers = silent, plain
    world.now = 119
    assert world.watch() == {}, "they may be starting, as this scheduler is"
    world.now = 120
    alert = world.watch().get("workers_silent", "")
    assert bool(alert) == told
    if told:
        assert "sume-jobs worker" in alert
