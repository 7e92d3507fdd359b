"""What a lease promises (I5, I6, I7)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest

from shared.claims.states import Reason
from shared.event import StoredArtifact
from tests.conformance.subject import LEASE, MAX_ATTEMPTS, STALE, Subject

FILE = StoredArtifact(index=0, path="job_a/00-a.png", bytes=3, sha256="ab" * 32, content_type="image/png", type="image")
SECOND = timedelta(seconds=1)


class LeasingConformance:
    """Inherit it and give a `subject` fixture."""

    def test_a_claimed_job_is_taken_once(self, subject: Subject) -> None:
        """Of sixteen workers with the same message one gets the lease."""
        subject.deliver("job_a")
        together = threading.Barrier(16)

        def take(_number: int) -> bool:
            together.wait(10)
            return subject.try_take("job_a") is not None

        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(take, range(16))).count(True) == 1

    @pytest.mark.parametrize("state", ["unknown", "expected", "running", "done", "dead"])
    def test_there_is_no_lease_on_a_job_that_is_not_claimed(self, subject: Subject, state: str) -> None:
        """A duplicate message finds nothing to do."""
        bring_to(subject, "job_a", state)
        assert subject.try_take("job_a") is None

    def test_a_lease_holds_all_a_worker_needs(self, subject: Subject) -> None:
        """Event, payload, attempt and age come with it."""
        subject.deliver("job_a", "job.failed", payload='{"event":"job.failed"}')
        subject.let_pass(timedelta(minutes=5))
        lease = subject.take("job_a")
        assert (lease.event, lease.status, lease.payload) == ("job.failed", "ERROR", '{"event":"job.failed"}')
        assert (lease.attempt, lease.strikes, lease.exhausted, lease.acknowledged) == (1, 0, False, False)
        assert timedelta(minutes=5) <= lease.claimed_for < timedelta(minutes=6)

    def test_only_the_current_token_finishes(self, subject: Subject) -> None:
        """A worker that lost its lease changes nothing."""
        subject.deliver("job_a")
        old = subject.take("job_a")
        subject.let_pass(LEASE + SECOND)
        assert subject.store.lose_leases(limit=9) == ["job_a"]
        new = subject.take("job_a")
        for token in (old.token, uuid4()):
            assert not subject.store.renew("job_a", token=token, lease=LEASE)
            assert not subject.store.record_artifact("job_a", FILE, token=token)
            assert not subject.store.release("job_a", token=token, reason=Reason.DOWNLOAD_FAILED, error="", wait=SECOND)
            assert not subject.store.hand_back(
                "job_a", token=token, reason=Reason.WORKER_STOPPED, error="", wait=SECOND
            )
            assert not subject.store.bury("job_a", token=token, reason=Reason.DOWNLOAD_FAILED, error="")
            assert not subject.store.finish("job_a", [], token=token, acknowledged=False)
        assert subject.state("job_a") == "running"
        assert subject.store.finish("job_a", [FILE], token=new.token, acknowledged=False)
        assert subject.state("job_a") == "done"

    def test_a_renewed_lease_is_not_lost(self, subject: Subject) -> None:
        """Renewal counts from now, so a worker that lives keeps its job for hours."""
        subject.deliver("job_a")
        lease = subject.take("job_a")
        for _ in range(5):
            subject.let_pass(LEASE - SECOND)
            assert subject.store.renew("job_a", token=lease.token, lease=LEASE)
            assert subject.store.lose_leases(limit=9) == []

    def test_done_keeps_exactly_the_artifacts_named(self, subject: Subject) -> None:
        """Files recorded on the way and no longer listed go; those listed stay with their hashes."""
        subject.deliver("job_a")
        lease = subject.take("job_a")
        other = StoredArtifact(index=1, path="job_a/01-b.png", bytes=9, sha256="cd" * 32)
        assert subject.store.record_artifact("job_a", FILE, token=lease.token)
        assert subject.store.record_artifact("job_a", other, token=lease.token)
        assert subject.store.finish("job_a", [FILE], token=lease.token, acknowledged=False)
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.state, record.artifacts, record.reason, record.error) == ("done", (FILE,), None, None)
        assert record.next_look_at is None

    def test_what_an_attempt_published_the_next_one_knows(self, subject: Subject) -> None:
        """A rerun can reuse what is stored and verified."""
        subject.deliver("job_a")
        lease = subject.take("job_a")
        subject.store.record_artifact("job_a", FILE, token=lease.token)
        subject.store.release("job_a", token=lease.token, reason=Reason.DOWNLOAD_FAILED, error="cut", wait=timedelta(0))
        again = subject.take("job_a")
        assert (again.artifacts, again.attempt) == ((FILE,), 2)
        assert (again.previous_reason, again.previous_error) == (Reason.DOWNLOAD_FAILED, "cut")

    def test_a_released_job_does_not_start_early(self, subject: Subject) -> None:
        """Not even through a duplicate message; it is due when its wait has passed."""
        subject.deliver("job_a")
        lease = subject.take("job_a")
        assert subject.store.release(
            "job_a", token=lease.token, reason=Reason.HANDLER_FAILED, error="boom", wait=timedelta(minutes=5)
        )
        assert subject.try_take("job_a") is None
        assert subject.store.overdue_claims(limit=9, stale=STALE) == []
        subject.let_pass(timedelta(minutes=5))
        assert [(m.job_id, m.attempt) for m in subject.store.overdue_claims(limit=9, stale=STALE)] == [("job_a", 2)]
        assert subject.take("job_a").attempt == 2

    def test_a_job_handed_back_counts_no_attempt(self, subject: Subject) -> None:
        """Neither a shutdown nor a parked job uses an attempt up."""
        subject.deliver("job_a")
        for _ in range(MAX_ATTEMPTS + 1):
            lease = subject.take("job_a")
            assert lease.attempt == 1
            assert subject.store.hand_back(
                "job_a", token=lease.token, reason=Reason.WORKER_STOPPED, error=None, wait=timedelta(0)
            )
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.attempts, record.reason, record.state) == (0, "worker_stopped", "claimed")

    def test_a_job_that_kills_its_worker_runs_out_of_strikes(self, subject: Subject) -> None:
        """After MAX_ATTEMPTS lost leases the next one taken is for burying alone, and counts no attempt."""
        subject.deliver("job_a")
        for attempt in range(1, MAX_ATTEMPTS + 1):
            lease = subject.take("job_a")
            assert (lease.attempt, lease.exhausted) == (attempt, False)
            subject.let_pass(LEASE + SECOND)
            assert subject.store.lose_leases(limit=9) == ["job_a"]
        last = subject.take("job_a")
        assert (last.exhausted, last.attempt, last.previous_reason) == (True, MAX_ATTEMPTS, Reason.WORKER_LOST)

    def test_failures_of_the_world_are_no_strikes(self, subject: Subject) -> None:
        """So that one lost worker after hours of outage does not kill the job."""
        subject.deliver("job_a")
        for _ in range(MAX_ATTEMPTS + 3):
            lease = subject.take("job_a")
            subject.store.release(
                "job_a", token=lease.token, reason=Reason.DOWNLOAD_FAILED, error="", wait=timedelta(0)
            )
        lease = subject.take("job_a")
        assert (lease.strikes, lease.exhausted) == (0, False)
        subject.store.release("job_a", token=lease.token, reason=Reason.INTEGRITY_FAILED, error="", wait=timedelta(0))
        assert subject.take("job_a").strikes == 1

    def test_a_buried_job_is_dead_with_its_reason(self, subject: Subject) -> None:
        """Dead jobs say why and are looked at no more."""
        bring_to(subject, "job_a", "dead")
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.state, record.reason, record.error) == ("dead", "integrity_failed", "wrong sha256")
        assert record.next_look_at is None
        assert not subject.deliver("job_a").new
        assert subject.state("job_a") == "dead"

    def test_done_never_reopens_by_a_late_delivery(self, subject: Subject) -> None:
        """A late duplicate is counted and nothing else (I7)."""
        bring_to(subject, "job_a", "done")
        assert not subject.deliver("job_a").new
        assert subject.state("job_a") == "done"
        assert subject.store.overdue_claims(limit=9, stale=STALE) == []

    def test_an_error_job_keeps_sumes_error_when_done(self, subject: Subject) -> None:
        """What Sume said stays readable after an attempt of ours failed and the next succeeded."""
        subject.deliver("job_a", "job.failed")
        lease = subject.take("job_a")
        subject.store.release("job_a", token=lease.token, reason=Reason.HANDLER_FAILED, error="boom", wait=timedelta(0))
        subject.store.finish("job_a", [], token=subject.take("job_a").token, acknowledged=True)
        record = subject.store.get_job("job_a")
        assert record is not None
        assert record.error == "nsfw: refused"
        assert record.acknowledged_at is not None


def bring_to(subject: Subject, job_id: str, state: str) -> None:
    """Bring a job into a state by the ordinary ways."""
    if state == "unknown":
        return
    if state == "expected":
        subject.store.expect(job_id, status_url=None, due_in=STALE)
        return
    subject.deliver(job_id)
    if state == "claimed":
        return
    lease = subject.take(job_id)
    if state == "done":
        assert subject.store.finish(job_id, [FILE], token=lease.token, acknowledged=False)
    if state == "dead":
        assert subject.store.bury(job_id, token=lease.token, reason=Reason.INTEGRITY_FAILED, error="wrong sha256")
