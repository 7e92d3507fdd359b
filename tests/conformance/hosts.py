"""What is promised about artifact hosts that fail for everybody, and about the jobs that wait for them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

from shared.claims.hosts import ProbeTimes, Tended
from shared.claims.records import Lease
from shared.claims.states import Reason
from tests.conformance.subject import LEASE, STALE, Subject

HOST = "media.sume.com"
OPENS_AFTER = 3
TIMES = ProbeTimes(first=timedelta(seconds=10), longest=timedelta(minutes=15))
AGAIN = timedelta(minutes=15)
SPREAD = timedelta(seconds=30)
SOON = timedelta(seconds=10)


class HostsConformance:
    """Inherit it and give a `subject` fixture."""

    def test_different_jobs_in_a_row_open_a_circuit_once(self, subject: Subject) -> None:
        """One job may fail as often as it wants; the third job to fail opens it, and is told so alone."""
        assert [fail(subject, "job_a") for _ in range(9)] == [False] * 9
        assert [fail(subject, job_id) for job_id in ("job_b", "job_c", "job_d")] == [False, True, False]
        (circuit,) = subject.store.stats().circuits
        assert (circuit.host, circuit.failures, circuit.waiting) == (HOST, 12, 0)
        assert circuit.next_probe_at - circuit.open_since == TIMES.first

    def test_a_success_in_between_begins_the_count_anew(self, subject: Subject) -> None:
        fail(subject, "job_a")
        fail(subject, "job_b")
        assert not subject.store.host_worked(HOST)
        assert not subject.store.host_worked("unheard-of.sume.com")
        assert [fail(subject, job_id) for job_id in ("job_c", "job_d", "job_e")] == [False, False, True]
        assert subject.store.host_worked(HOST)
        assert subject.store.stats().circuits == ()

    def test_failures_of_another_day_do_not_count(self, subject: Subject) -> None:
        fail(subject, "job_a")
        fail(subject, "job_b")
        subject.let_pass(timedelta(days=1, seconds=1))
        assert not fail(subject, "job_c")

    def test_a_lease_tells_of_failing_hosts(self, subject: Subject) -> None:
        """It comes with the lease, so that nobody has to ask while all is well."""
        subject.deliver("job_a")
        lease = subject.take("job_a")
        assert lease.failing_hosts == {}
        fail(subject, "job_x", host="cdn.sume.com")
        open_circuit(subject)
        subject.store.hand_back("job_a", token=lease.token, reason=Reason.WORKER_STOPPED, error="", wait=timedelta(0))
        assert subject.take("job_a").failing_hosts == {HOST: True, "cdn.sume.com": False}

    def test_one_job_at_a_time_probes(self, subject: Subject) -> None:
        """None before the back-off has passed, then one of any number, and nobody else while it is at work."""
        open_circuit(subject)
        leases = [taken(subject, f"job_{number}") for number in range(8)]
        waits = [probe(subject, lease) for lease in leases]
        assert all(wait is not None and SOON / 2 < wait <= SOON for wait in waits)
        subject.let_pass(SOON)
        together = threading.Barrier(8)

        def ask(lease: Lease) -> bool:
            together.wait(10)
            return probe(subject, lease) is None

        with ThreadPoolExecutor(8) as pool:
            asked = list(pool.map(ask, leases))
        assert asked.count(True) == 1
        prober = leases[asked.index(True)]
        for lease in leases:
            subject.store.renew(lease.job_id, token=lease.token, lease=timedelta(hours=9))
        subject.let_pass(timedelta(hours=1))
        assert all(probe(subject, lease) is not None for lease in leases if lease is not prober)
        assert probe(subject, prober) is None  # it may ask again

    def test_probes_back_off_to_the_longest_wait(self, subject: Subject) -> None:
        """Half a day without a host is a few dozen probes."""
        open_circuit(subject)
        lease, probes, hours = taken(subject, "job_a"), 0, timedelta(0)
        while hours < timedelta(hours=12):
            subject.store.renew(lease.job_id, token=lease.token, lease=timedelta(days=9))
            token = uuid4()
            wait = subject.store.take_probe(HOST, job_id="job_a", token=token, times=TIMES)
            if wait is None:
                probes += 1
                fail(subject, "job_a", token=token)
            hours += timedelta(seconds=30)
            subject.let_pass(timedelta(seconds=30))
        assert 48 <= probes < 48 * 2 + 12

    def test_a_probe_that_died_is_followed_by_another(self, subject: Subject) -> None:
        """The right to probe ends with the lease."""
        open_circuit(subject)
        subject.let_pass(SOON)
        assert probe(subject, taken(subject, "job_a")) is None
        subject.let_pass(LEASE + timedelta(seconds=1))
        assert subject.store.lose_leases(limit=9) == ["job_a"]
        assert probe(subject, taken(subject, "job_b")) is None

    def test_waiting_jobs_are_called_one_at_a_time_and_freed_together(self, subject: Subject) -> None:
        """The one tried least comes first; nobody else is due meanwhile, for hours, without having been leased."""
        open_circuit(subject)
        for number in range(6):
            wait_for_host(subject, f"job_{number}")
        record = subject.store.get_job("job_0")
        (circuit,) = subject.store.stats().circuits
        assert record is not None
        assert (record.next_look_at, record.attempts, circuit.waiting) == (circuit.next_probe_at, 0, 6)
        assert tend(subject) == Tended(called=0, freed=0)
        subject.let_pass(SOON)
        assert tend(subject) == Tended(called=1, freed=0)
        assert tend(subject) == Tended(called=0, freed=0)  # that one is counted on
        (message,) = subject.store.overdue_claims(limit=9, stale=STALE)
        assert probe(subject, subject.take(message.job_id)) is None
        for _ in range(24):
            subject.let_pass(timedelta(minutes=5))
            assert tend(subject).called == 0
            assert subject.store.overdue_claims(limit=9, stale=STALE) == []
        assert subject.store.host_worked(HOST)
        assert tend(subject) == Tended(called=0, freed=5)
        subject.let_pass(SPREAD)
        assert len(subject.store.overdue_claims(limit=9, stale=STALE)) == 5

    def test_a_call_nobody_followed_is_repeated(self, subject: Subject) -> None:
        """Its message may have been lost, and its worker too."""
        open_circuit(subject)
        wait_for_host(subject, "job_a")
        subject.let_pass(SOON)
        assert tend(subject).called == 1
        subject.let_pass(STALE)
        assert tend(subject).called == 1
        assert [message.job_id for message in subject.store.overdue_claims(limit=9, stale=STALE)] == ["job_a"]


def open_circuit(subject: Subject) -> None:
    """Let as many jobs fail as it takes."""
    assert [fail(subject, f"job_failed_{number}") for number in range(OPENS_AFTER)][-1]


def fail(subject: Subject, job_id: str, *, host: str = HOST, token: UUID | None = None) -> bool:
    """Let a job fail at a host; return whether that opened its circuit."""
    return subject.store.host_failed(host, job_id=job_id, token=token or uuid4(), opens_after=OPENS_AFTER, times=TIMES)


def taken(subject: Subject, job_id: str) -> Lease:
    """Deliver a job and take its lease."""
    subject.deliver(job_id)
    return subject.take(job_id)


def probe(subject: Subject, lease: Lease) -> timedelta | None:
    """Ask to probe the host."""
    return subject.store.take_probe(HOST, job_id=lease.job_id, token=lease.token, times=TIMES)


def wait_for_host(subject: Subject, job_id: str) -> None:
    """Let a job find the circuit open."""
    lease = taken(subject, job_id)
    assert subject.store.hand_back(
        job_id,
        token=lease.token,
        reason=Reason.DOWNLOAD_FAILED,
        error="the circuit is open",
        wait=AGAIN,
        waits_for_host=HOST,
    )


def tend(subject: Subject) -> Tended:
    """Do what the scheduler does every few seconds."""
    return subject.store.tend_circuits(within=STALE, again=AGAIN, spread=SPREAD, limit=4)
