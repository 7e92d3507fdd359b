"""What the sweeps promise (I1)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest

from shared.claims.states import Reason
from tests.conformance.leasing import bring_to
from tests.conformance.subject import LEASE, STALE, Subject

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


class SweepingConformance:
    """Inherit it and give a `subject` fixture."""

    def test_a_claim_not_started_is_overdue_after_the_stale_time_and_not_before(self, subject: Subject) -> None:
        """Its message was lost, or never sent; each sweep hands it out once."""
        subject.deliver("job_a")
        subject.let_pass(STALE - timedelta(seconds=5))
        assert subject.store.overdue_claims(limit=9, stale=STALE) == []
        subject.let_pass(timedelta(seconds=5))
        [message] = subject.store.overdue_claims(limit=9, stale=STALE)
        assert (message.job_id, message.event, message.status, message.attempt) == ("job_a", "job.completed", "OK", 1)
        assert subject.store.overdue_claims(limit=9, stale=STALE) == []
        subject.let_pass(STALE)
        assert len(subject.store.overdue_claims(limit=9, stale=STALE)) == 1

    def test_error_jobs_come_before_all_others(self, subject: Subject) -> None:
        """Even when others have waited longer."""
        for n in range(3):
            subject.deliver(f"job_ok{n}")
        subject.let_pass(MINUTE)
        subject.deliver("job_bad", "job.failed")
        subject.let_pass(STALE)
        assert [m.job_id for m in subject.store.overdue_claims(limit=1, stale=STALE)] == ["job_bad"]

    @pytest.mark.parametrize("kind", ["claims", "polls", "leases"])
    def test_schedulers_at_once_share_the_rows(self, subject: Subject, kind: str) -> None:
        """Eight sweeps at once hand each job out once."""
        for n in range(60):
            if kind == "polls":
                subject.store.expect(f"job_{n:02}", status_url=None, due_in=timedelta(0))
            else:
                bring_to(subject, f"job_{n:02}", "running" if kind == "leases" else "claimed")
        subject.let_pass(STALE)
        together = threading.Barrier(8)

        def sweep(_number: int) -> list[str]:
            together.wait(10)
            return [job_id for _ in range(8) for job_id in hand_out(subject, kind)]

        with ThreadPoolExecutor(8) as pool:
            found = [job_id for ids in pool.map(sweep, range(8)) for job_id in ids]
        assert sorted(found) == [f"job_{n:02}" for n in range(60)]

    def test_a_lease_that_ran_out_is_lost_once_and_due_at_once(self, subject: Subject) -> None:
        """The job goes back to claimed with the reason and a strike."""
        bring_to(subject, "job_a", "running")
        assert subject.store.lose_leases(limit=9) == []
        subject.let_pass(LEASE)
        assert subject.store.lose_leases(limit=9) == ["job_a"]
        assert subject.store.lose_leases(limit=9) == []
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.state, record.reason) == ("claimed", "worker_lost")
        assert [(m.job_id, m.attempt) for m in subject.store.overdue_claims(limit=9, stale=STALE)] == [("job_a", 2)]

    def test_an_expected_job_is_due_in_its_time_then_backs_off(self, subject: Subject) -> None:
        """Due in, then interval, doubling up to the maximum; each poll to one scheduler."""
        subject.store.expect("job_a", status_url="https://a/1", due_in=10 * MINUTE)
        assert subject.store.due_polls(limit=9, interval=MINUTE, maximum=4 * MINUTE) == []
        subject.let_pass(10 * MINUTE)
        for polls, wait in enumerate((MINUTE, 2 * MINUTE, 4 * MINUTE, 4 * MINUTE), start=1):
            [poll] = subject.store.due_polls(limit=9, interval=MINUTE, maximum=4 * MINUTE)
            assert (poll.job_id, poll.status_url, poll.polls) == ("job_a", "https://a/1", polls)
            assert poll.expected_for >= 10 * MINUTE
            subject.let_pass(wait - timedelta(seconds=5))
            assert subject.store.due_polls(limit=9, interval=MINUTE, maximum=4 * MINUTE) == []
            subject.let_pass(timedelta(seconds=5))

    def test_a_poll_can_be_postponed(self, subject: Subject) -> None:
        """Sume's Retry-After moves that job alone."""
        for job_id in ("job_a", "job_b"):
            subject.store.expect(job_id, status_url=None, due_in=timedelta(0))
        subject.store.postpone_poll("job_a", wait=MINUTE)
        assert [p.job_id for p in subject.store.due_polls(limit=9, interval=MINUTE, maximum=MINUTE)] == ["job_b"]

    def test_giving_up_on_an_expected_job_leaves_its_first_webhook_new(self, subject: Subject) -> None:
        """It has no event yet, so a webhook that comes after all claims it."""
        bring_to(subject, "job_a", "expected")
        assert subject.store.bury("job_a", token=None, reason=Reason.POLL_GAVE_UP, error="did not end in 7 days")
        assert subject.state("job_a") == "dead"
        assert subject.deliver("job_a").new
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.state, record.reason, record.error) == ("claimed", None, None)

    def test_giving_up_never_hits_a_job_that_was_claimed_meanwhile(self, subject: Subject) -> None:
        """A webhook between the poll and the burial wins."""
        bring_to(subject, "job_a", "expected")
        subject.deliver("job_a")
        assert not subject.store.bury("job_a", token=None, reason=Reason.POLL_GAVE_UP, error="")
        assert subject.state("job_a") == "claimed"

    def test_a_token_lives_until_its_lease_ends(self, subject: Subject) -> None:
        """Neither a lost lease's token nor one that was never committed is live, whatever the job does next."""
        subject.deliver("job_a")
        lost, unknown = subject.take("job_a").token, uuid4()
        assert subject.store.live_tokens([lost, unknown]) == {lost}
        subject.let_pass(LEASE)
        assert subject.store.live_tokens([lost]) == {lost}
        subject.store.lose_leases(limit=9)
        current = subject.take("job_a").token
        assert subject.store.live_tokens([lost, unknown, current]) == {current}
        subject.store.finish("job_a", [], token=current, acknowledged=False)
        assert subject.store.live_tokens([lost, current]) == set()
        assert subject.store.live_tokens([]) == set()

    def test_pruning_keeps_the_key_so_a_late_delivery_is_a_duplicate(self, subject: Subject) -> None:
        """Payload, timeline and artifact rows go; the job stays done for ever."""
        bring_to(subject, "job_a", "done")
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=False).jobs == 0
        subject.let_pass(DAY)
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=True).jobs == 1
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=False).jobs == 1
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.state, record.artifacts, record.timeline) == ("done", (), ())
        assert record.pruned_at is not None
        late = subject.deliver("job_a")
        assert (late.new, late.deliveries) == (False, 2)
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=True).jobs == 0

    def test_pruning_spares_what_a_person_must_see(self, subject: Subject) -> None:
        """Dead and open jobs and ERROR jobs nobody was told of stay whole, however old."""
        for state in ("expected", "claimed", "running", "dead"):
            bring_to(subject, f"job_{state}", state)
        subject.deliver("job_error", "job.failed")
        subject.store.finish("job_error", [], token=subject.take("job_error").token, acknowledged=False)
        subject.let_pass(400 * DAY)
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=False).jobs == 0
        subject.store.acknowledge(["job_error"])
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=False).jobs == 1


def hand_out(subject: Subject, kind: str) -> list[str]:
    """Take a few of what is due of this kind."""
    if kind == "claims":
        return [message.job_id for message in subject.store.overdue_claims(limit=5, stale=STALE)]
    if kind == "polls":
        return [poll.job_id for poll in subject.store.due_polls(limit=5, interval=DAY, maximum=DAY)]
    return subject.store.lose_leases(limit=5)
