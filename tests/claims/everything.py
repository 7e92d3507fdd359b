"""Everything a store is ever asked, once, on the jobs of `crowd`."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

from shared.claims.hosts import ProbeTimes
from shared.claims.records import Claim, JobFilter
from shared.claims.states import STATES, Reason
from shared.claims.store import Store
from shared.event import Status, StoredArtifact
from tests.conformance.subject import LEASE, STALE, event

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
FILE = StoredArtifact(0, "a/0.png", 3, "a" * 64, "image/png", "image")
TIMES = ProbeTimes(SECOND, DAY)
STATUSES: tuple[Status, ...] = ("OK", "ERROR")


def ask_everything(store: Store, *, name: Callable[[str], None]) -> None:
    """Call each method so that each of its statements is run; `name` is told what a composed statement is for."""
    receive(store)
    work(store)
    meet_failing_hosts(store)
    repair(store)
    operate(store)
    list_jobs(store, name=name)
    watch(store)


def receive(store: Store) -> None:
    """Do what a receiver does."""
    new = [event(f"job_new_{n}") for n in range(32)]
    known = [event(f"job_claimed_{n}") for n in range(1, 32)]
    store.claim_many([Claim(each) for each in (*new, *known)])
    store.expect("job_registered", status_url=None, due_in=STALE)
    store.quarantine(b"?", reason="invalid_json")
    store.count({"accepted": 1}, details={})
    store.check()


def work(store: Store) -> None:
    """Do what a worker does, with every end an attempt can have."""
    tokens = {f"job_claimed_{n}": uuid4() for n in range(1, 6)}
    for job_id, token in tokens.items():
        assert store.take_lease(job_id, token=token, owner="worker", lease=LEASE, max_attempts=3)
        assert store.renew(job_id, token=token, lease=LEASE)
        assert store.record_artifact(job_id, FILE, token=token)
    (done, a), (released, b), (back, c), (buried, d), (lost, e) = tokens.items()
    assert store.finish(done, [FILE], token=a, acknowledged=False)
    assert store.release(released, token=b, reason=Reason.TIMED_OUT, error="slow", wait=SECOND)
    assert store.hand_back(back, token=c, reason=Reason.WORKER_STOPPED, error=None, wait=SECOND)
    assert store.bury(buried, token=d, reason=Reason.TOO_LARGE, error="large")
    assert store.bury("job_expected_1", token=None, reason=Reason.POLL_GAVE_UP, error="open")
    assert store.renew(lost, token=e, lease=-SECOND)
    assert store.acknowledge(["job_done_1"]) == 1


def meet_failing_hosts(store: Store) -> None:
    """Open the circuit of the host that jobs of the crowd wait for, and close that of another."""
    for n in range(5):
        store.host_failed("media.example.com", job_id=f"job_{n}", token=uuid4(), opens_after=5, times=TIMES)
    assert store.take_probe("media.example.com", job_id="job_claimed_3", token=uuid4(), times=TIMES) is not None
    store.tend_circuits(within=STALE, again=DAY, spread=STALE, limit=10)
    store.host_worked("other.example.com")


def repair(store: Store) -> None:
    """Do what a scheduler does."""
    assert store.lose_leases(limit=10) == ["job_claimed_5"]
    assert store.overdue_claims(limit=10, stale=STALE)
    store.due_polls(limit=8, interval=SECOND, maximum=DAY)
    store.postpone_poll("job_expected_2", wait=SECOND)
    store.live_tokens([uuid4()])
    assert store.prune(older_than=28 * DAY, limit=10, dry_run=True).jobs == 10
    assert store.prune(older_than=28 * DAY, limit=10, dry_run=False).jobs == 10


def operate(store: Store) -> None:
    """Do what people do, lists apart."""
    assert store.get_job("job_dead_1") is not None
    assert store.dead_job_ids(reason=None, since=None)
    store.dead_job_ids(reason=Reason.INTEGRITY_FAILED, since=DAY)
    assert store.requeue("job_dead_1", force=False).outcome == "requeued"
    store.stats()
    assert sum(1 for _ in store.audit()) > 0
    assert store.acknowledge(None) > 0
    store.replace_storage_id("b")
    assert store.keep_storage_id("a") == "b"


def list_jobs(store: Store, *, name: Callable[[str], None]) -> None:
    """Look at the first page and the next one, of everything and of each filter."""
    filters = [JobFilter(limit=10)]
    filters += [JobFilter(state=state, limit=10) for state in STATES]
    filters += [JobFilter(status=status, limit=10) for status in STATUSES]
    filters += [JobFilter(redelivered=True, limit=10)]
    for wanted in filters:
        name(f"list {wanted.state or wanted.status or ('redelivered' if wanted.redelivered else 'all')}")
        cursor = store.list_jobs(wanted).next_cursor
        assert cursor is not None
        store.list_jobs(JobFilter(wanted.state, wanted.status, wanted.redelivered, 10, cursor))
    name("outside")


def watch(store: Store) -> None:
    """Do what is done to notice what no job tells of."""
    store.beat("worker", "host.1")
    store.silent_for("worker")
    store.intake_facts()
    store.may_alert("host", "a", every=DAY)
    store.take_held_back(["host"], every=DAY)
    store.long_waits([Reason.DOWNLOAD_FAILED], longer_than=SECOND)
    [entry] = store.list_quarantine(replayed=False, limit=1)
    store.list_quarantine(replayed=True, limit=50)
    assert store.open_quarantine_ids()
    assert store.get_quarantined(entry.id) is not None
    assert store.untold_quarantine(limit=10)
    store.mark_quarantine_told([entry.id])
    assert store.mark_replayed(entry.id)
