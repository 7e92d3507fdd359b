"""People are told of outages: what jobs wait for, and that Redis is away."""

from collections.abc import Collection
from datetime import timedelta

from scheduler.waiting import LONG, WAITED_FOR, WaitWatch
from shared.claims.states import WORLD_REASONS, Reason
from shared.claims.waits import LongWait
from shared.errors import QueueUnavailableError
from tests.scheduler.fakes import NEVER

MINUTE = timedelta(minutes=1)


class World:
    """A store, a queue, people and a clock, as a test sets them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.redis = True
        self.waits: list[LongWait] = []
        self.told: list[tuple[str, str]] = []
        self.watch = WaitWatch(self, self, self, monotonic=lambda: self.now)

    def look(self) -> list[str]:
        """Look once; return the kinds that were told."""
        self.told = []
        self.watch.watch(NEVER)
        return [kind for kind, _ in self.told]

    def long_waits(self, reasons: Collection[Reason], *, longer_than: timedelta) -> list[LongWait]:
        """See WaitStore.long_waits."""
        assert longer_than == LONG
        return [wait for wait in self.waits if wait.reason in reasons]

    def ping(self) -> None:
        """See Queue.ping."""
        if not self.redis:
            raise QueueUnavailableError("Redis cannot be reached")

    def tell_daily(self, kind: str, subject: str, title: str, body: str) -> bool:
        """See AppriseAlerts.tell_daily."""
        assert subject == ""
        self.told.append((kind, f"{title}\n{body}"))
        return True


def test_every_failure_of_the_world_can_be_waited_for() -> None:
    """Whoever adds a reason says what a person reads of it."""
    assert set(WAITED_FOR) == WORLD_REASONS


def test_long_waits_are_told_with_what_they_wait_for() -> None:
    """How many, for how long, and what to run; nothing while nothing waits."""
    world = World()
    assert world.look() == []
    world.waits = [
        LongWait(Reason.HANDLER_FAILED, 7, 95 * MINUTE, "job_demo"),
        LongWait(Reason.STORAGE_FAILED, 1, 31 * MINUTE, "job_other"),
    ]
    assert world.look() == ["waiting_handler_failed", "waiting_storage_failed"]
    handler = world.told[0][1]
    assert handler.startswith("7 jobs wait: handler_failed\nFor up to 95 minutes: your handler")
    assert "sume-jobs show job_demo" in handler


def test_redis_is_told_of_once_it_has_been_away_for_a_while() -> None:
    """A restart is no outage, and one that ended begins no other."""
    world = World()
    world.redis = False
    assert world.look() == []
    world.now += 299
    assert world.look() == []
    world.redis = True
    assert world.look() == []
    world.redis = False
    world.now += 299
    assert world.look() == []
    world.now += 300
    assert world.look() == ["redis_away"]
