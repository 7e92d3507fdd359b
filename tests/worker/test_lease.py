"""A lease is renewed while work goes on, and known to be lost before anybody else can have it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.claims.records import Lease
from shared.errors import LeaseLostError, RetryableError, ShutdownError, StoreUnavailableError
from worker.lease import LeaseKeeper, Renewals
from worker.stop import StopFlag

LENGTH = timedelta(seconds=0.3)
LEASE = Lease(
    job_id="job_demo",
    token=uuid4(),
    event="job.completed",
    status="OK",
    payload="{}",
    status_url=None,
    attempt=1,
    strikes=0,
    exhausted=False,
    previous_reason=None,
    previous_error=None,
    claimed_for=timedelta(0),
    acknowledged=False,
    artifacts=(),
)


class PlayedStore:
    """A store whose renewals succeed, are refused, or fail."""

    def __init__(self, answers: Callable[[int], bool] = lambda _count: True) -> None:
        self._answers = answers
        self.renewals = 0
        self.renewed = threading.Semaphore(0)

    def renew(self, job_id: str, *, token: UUID, lease: timedelta) -> bool:
        """Answer as told."""
        assert (job_id, token, lease) == (LEASE.job_id, LEASE.token, LENGTH)
        self.renewals += 1
        try:
            return self._answers(self.renewals)
        finally:
            self.renewed.release()


KeeperMaker = Callable[..., LeaseKeeper]


@pytest.fixture
def renewals() -> Iterator[Renewals]:
    """What renews every lease of the test."""
    with Renewals(LENGTH) as renewals:
        yield renewals


@pytest.fixture
def keep(renewals: Renewals) -> Iterator[KeeperMaker]:
    with ExitStack() as stack:

        def make(store: PlayedStore, **how: Any) -> LeaseKeeper:
            return stack.enter_context(keeper_of(store, renewals, **how))

        yield make


def keeper_of(
    store: PlayedStore,
    renewals: Renewals,
    *,
    taken_at: float | None = None,
    deadline: float = float("inf"),
    stop: StopFlag | None = None,
) -> LeaseKeeper:
    return LeaseKeeper(
        LEASE,
        store=store,
        renewals=renewals,
        taken_at=time.monotonic() if taken_at is None else taken_at,
        deadline=deadline,
        stop=stop or StopFlag(),
    )


def away(_count: int) -> bool:
    raise StoreUnavailableError("PostgreSQL cannot be reached")


def until_lost(keeper: LeaseKeeper) -> str:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            keeper.check()
        except LeaseLostError as error:
            return str(error)
    raise AssertionError


def test_a_renewed_lease_outlives_its_first_length(keep: KeeperMaker) -> None:
    store = PlayedStore()
    keeper = keep(store)
    for _ in range(5):
        assert store.renewed.acquire(timeout=5)
    keeper.check()


def test_one_thread_renews_the_leases_that_are_held_and_no_other(renewals: Renewals) -> None:
    """A lease starts none, and one that was given up is left alone."""
    threads = threading.active_count()
    given_up, held, held_too = PlayedStore(), PlayedStore(), PlayedStore()
    with keeper_of(given_up, renewals):
        pass
    with keeper_of(held, renewals), keeper_of(held_too, renewals):
        assert threading.active_count() == threads
        for store in (held, held, held_too):
            assert store.renewed.acquire(timeout=5)
    assert given_up.renewals == 0


def test_a_refused_renewal_means_lost_at_once_and_for_good(keep: KeeperMaker) -> None:
    store = PlayedStore(lambda count: count > 1)
    assert until_lost(keep(store)) == "the lease was taken back"
    assert store.renewals == 1


def test_a_lease_that_cannot_be_renewed_is_lost_when_its_length_is_over(keep: KeeperMaker) -> None:
    """Counted from before it was taken; renewal is tried again in between, and more often."""
    store = PlayedStore(away)
    before = time.monotonic()
    keeper = keep(store, taken_at=before)
    assert until_lost(keeper) == "the lease could not be renewed in time"
    assert LENGTH.total_seconds() <= time.monotonic() - before < 2 * LENGTH.total_seconds()
    assert store.renewals > 2


def test_a_renewal_counts_from_before_it_was_asked_for(keep: KeeperMaker) -> None:
    """After one that succeeded the lease is good for its length, and no longer."""
    store = PlayedStore(lambda count: count == 1 or away(count))
    before = time.monotonic()
    until_lost(keep(store))
    assert time.monotonic() - before < 3 * LENGTH.total_seconds()


def test_a_database_that_comes_back_in_time_saves_the_lease(keep: KeeperMaker) -> None:
    store = PlayedStore(lambda count: away(count) if count in {1, 2} else True)
    keeper = keep(store)
    for _ in range(6):
        assert store.renewed.acquire(timeout=5)
    keeper.check()


def test_a_lease_that_took_long_to_take_is_known_to_be_lost(keep: KeeperMaker) -> None:
    with pytest.raises(LeaseLostError):
        keep(PlayedStore(), taken_at=time.monotonic() - 1).check()


def test_a_stop_and_a_deadline_end_the_work_but_a_lost_lease_comes_first(keep: KeeperMaker) -> None:
    stop = StopFlag()
    late = keep(PlayedStore(), deadline=time.monotonic(), stop=stop)
    with pytest.raises(RetryableError) as caught:
        late.check()
    assert caught.value.reason == "timed_out"
    stop.set()
    with pytest.raises(ShutdownError):
        late.check()
    late.check_held()
    with pytest.raises(LeaseLostError):
        keep(PlayedStore(), taken_at=time.monotonic() - 1, stop=stop).check()


def test_an_outcome_is_written_as_soon_as_the_database_is_back(keep: KeeperMaker) -> None:
    """Even when the worker was asked to stop, if the database is there; a refused one is a lost lease."""
    tries = iter(range(2))
    keep(PlayedStore()).write(lambda: next(tries) == 1 or away(0))
    stop = StopFlag()
    stop.set()
    keep(PlayedStore(), stop=stop).write(lambda: True)
    with pytest.raises(LeaseLostError):
        keep(PlayedStore()).write(lambda: False)


@pytest.mark.parametrize("stopping", [False, True])
def test_an_outcome_is_given_up_when_the_lease_runs_out_or_the_worker_has_to_stop(
    keep: KeeperMaker, *, stopping: bool
) -> None:
    stop = StopFlag()
    if stopping:
        stop.set()
    keeper = keep(PlayedStore(away), stop=stop)
    before = time.monotonic()
    with pytest.raises(LeaseLostError):
        keeper.write(lambda: away(0))
    assert time.monotonic() - before < 3
