"""What operators are promised."""

from datetime import timedelta

import pytest

from shared.claims.records import JobFilter
from shared.claims.states import STATES, Reason
from shared.errors import UsageError
from tests.conformance.leasing import FILE, bring_to
from tests.conformance.subject import LEASE, STALE, Subject

HOUR = timedelta(hours=1)


class OperatingConformance:
    """Inherit it and give a `subject` fixture."""

    def test_the_list_begins_with_what_needs_a_person(self, subject: Subject) -> None:
        """ERROR jobs nobody was told of, then dead ones, then the rest by their latest change."""
        bring_to(subject, "job_dead", "dead")
        subject.deliver("job_error", "job.failed")
        for job_id in ("job_1", "job_2"):
            subject.let_pass(HOUR)
            bring_to(subject, job_id, "done")
        page = subject.store.list_jobs(JobFilter())
        assert [job.job_id for job in page.jobs] == ["job_error", "job_dead", "job_2", "job_1"]
        assert page.next_cursor is None

    def test_pages_show_every_job_once(self, subject: Subject) -> None:
        """A cursor goes on where the page before ended."""
        for n in range(7):
            subject.deliver(f"job_{n}", "job.failed" if n % 3 else "job.completed")
        seen: list[str] = []
        cursor = None
        while True:
            page = subject.store.list_jobs(JobFilter(limit=2, cursor=cursor))
            seen += [job.job_id for job in page.jobs]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(seen) == [f"job_{n}" for n in range(7)]
        assert len(set(seen)) == 7

    def test_pages_of_a_state_show_its_jobs_alone(self, subject: Subject) -> None:
        """In the same order as the whole list, through every page."""
        for state in STATES:
            for n in range(3):
                bring_to(subject, f"job_{state}_{n}", state)
        for state in STATES:
            seen: list[str] = []
            cursor = None
            for _ in range(2):
                page = subject.store.list_jobs(JobFilter(state=state, limit=2, cursor=cursor))
                seen += [job.job_id for job in page.jobs]
                cursor = page.next_cursor
            assert (seen, cursor) == ([f"job_{state}_{n}" for n in (2, 1, 0)], None)

    @pytest.mark.parametrize("cursor", ["", "x", "!!!", "W10", "bnVsbA", "WzEsMiwzXQ", "WzEsInllc3RlcmRheSIsImEiXQ"])
    def test_a_cursor_of_somebody_else_is_refused(self, subject: Subject, cursor: str) -> None:
        """Bad input gets a clear error."""
        with pytest.raises(UsageError, match="cursor"):
            subject.store.list_jobs(JobFilter(cursor=cursor))

    def test_the_list_can_be_filtered(self, subject: Subject) -> None:
        """By state, status and redelivery."""
        bring_to(subject, "job_done", "done")
        subject.deliver("job_twice")
        subject.deliver("job_twice")
        subject.deliver("job_error", "job.canceled")

        def ids(wanted: JobFilter) -> list[str]:
            return [job.job_id for job in subject.store.list_jobs(wanted).jobs]

        assert ids(JobFilter(state="done")) == ["job_done"]
        assert ids(JobFilter(status="ERROR")) == ["job_error"]
        assert ids(JobFilter(redelivered=True)) == ["job_twice"]
        assert ids(JobFilter(state="dead")) == []

    def test_a_listed_job_is_whole(self, subject: Subject) -> None:
        """The list shows of each job what `show` does, files and timeline included."""
        for state in ("expected", "claimed", "done", "dead"):
            bring_to(subject, f"job_{state}", state)
        listed = {job.job_id: job for job in subject.store.list_jobs(JobFilter()).jobs}
        assert len(listed) == 4
        assert all(subject.store.get_job(job_id) == job for job_id, job in listed.items())
        assert listed["job_done"].artifacts == (FILE,)

    def test_an_unknown_job_is_none(self, subject: Subject) -> None:
        """There is nothing to show."""
        assert subject.store.get_job("job_nobody") is None

    def test_the_timeline_tells_every_change_and_its_cause(self, subject: Subject) -> None:
        """From registration to done, duplicates left out."""
        subject.store.expect("job_a", status_url=None, due_in=HOUR)
        subject.deliver("job_a")
        subject.deliver("job_a")
        lease = subject.take("job_a")
        subject.store.release("job_a", token=lease.token, reason=Reason.DOWNLOAD_FAILED, error="cut", wait=timedelta(0))
        subject.take("job_a")
        subject.let_pass(LEASE)
        subject.store.lose_leases(limit=9)
        subject.store.finish("job_a", [FILE], token=subject.take("job_a").token, acknowledged=False)
        record = subject.store.get_job("job_a")
        assert record is not None
        assert [(entry.state, entry.attempt) for entry in record.timeline] == [
            ("expected", 0),
            ("claimed", 0),
            ("running", 1),
            ("claimed", 1),
            ("running", 2),
            ("claimed", 2),
            ("running", 3),
            ("done", 3),
        ]
        details = [entry.detail for entry in record.timeline]
        assert details[3] == "download_failed: cut"
        assert details[5] is not None
        assert details[5].startswith("worker_lost")

    def test_requeue_reopens_a_dead_job_with_fresh_attempts(self, subject: Subject) -> None:
        """It is claimed again, its message is returned for enqueueing, and it starts at attempt 1."""
        bring_to(subject, "job_a", "dead")
        requeued = subject.store.requeue("job_a", force=False)
        assert (requeued.outcome, requeued.state) == ("requeued", "dead")
        assert requeued.message is not None
        assert (requeued.message.job_id, requeued.message.attempt) == ("job_a", 1)
        lease = subject.take("job_a")
        assert (lease.attempt, lease.strikes) == (1, 0)

    def test_requeue_restarts_the_time_that_retries_are_allowed(self, subject: Subject) -> None:
        """RETRY_FOR_SECONDS counts from the requeue, or a requeued job would die at its next failure."""
        bring_to(subject, "job_a", "dead")
        subject.let_pass(48 * HOUR)
        subject.store.requeue("job_a", force=False)
        assert subject.take("job_a").claimed_for < HOUR

    @pytest.mark.parametrize("state", ["expected", "claimed", "running", "done"])
    def test_requeue_leaves_every_other_state_alone(self, subject: Subject, state: str) -> None:
        """Without force only dead reopens; with force done does too."""
        bring_to(subject, "job_a", state)
        assert subject.store.requeue("job_a", force=False).outcome == "not_dead"
        assert subject.state("job_a") == state
        forced = subject.store.requeue("job_a", force=True)
        assert forced.outcome == ("requeued" if state == "done" else "not_dead")
        assert forced.state == state

    def test_requeue_of_an_unknown_job_says_so(self, subject: Subject) -> None:
        """Nothing is created."""
        assert subject.store.requeue("job_nobody", force=True).outcome == "unknown"

    def test_requeue_of_a_job_polling_gave_up_on_expects_it_again(self, subject: Subject) -> None:
        """It has no event to work on, so Sume is asked, at once and with the time to give up restarted."""
        bring_to(subject, "job_a", "expected")
        subject.let_pass(100 * HOUR)
        subject.store.bury("job_a", token=None, reason=Reason.POLL_GAVE_UP, error="")
        assert subject.store.requeue("job_a", force=False).outcome == "expected"
        [poll] = subject.store.due_polls(limit=9, interval=HOUR, maximum=HOUR)
        assert (poll.job_id, poll.polls) == ("job_a", 1)
        assert poll.expected_for < HOUR

    def test_a_pruned_job_cannot_be_rerun(self, subject: Subject) -> None:
        """Its payload is gone."""
        bring_to(subject, "job_a", "done")
        subject.let_pass(HOUR)
        subject.store.prune(older_than=HOUR, limit=9, dry_run=False)
        assert subject.store.requeue("job_a", force=True).outcome == "pruned"
        assert subject.state("job_a") == "done"

    def test_dead_jobs_are_found_by_reason_and_age(self, subject: Subject) -> None:
        """For `requeue --state dead`."""
        bring_to(subject, "job_old", "dead")
        subject.let_pass(HOUR)
        bring_to(subject, "job_new", "dead")
        store = subject.store
        assert store.dead_job_ids(reason=None, since=None) == ["job_old", "job_new"]
        assert store.dead_job_ids(reason=Reason.INTEGRITY_FAILED, since=HOUR / 2) == ["job_new"]
        assert store.dead_job_ids(reason=Reason.WORKER_LOST, since=None) == []

    def test_acknowledging_marks_error_jobs_once(self, subject: Subject) -> None:
        """OK jobs are not to be acknowledged."""
        subject.deliver("job_ok")
        for job_id in ("job_1", "job_2", "job_3"):
            subject.deliver(job_id, "job.failed")
        assert subject.store.acknowledge(["job_1", "job_ok", "job_nobody"]) == 1
        assert subject.store.acknowledge(["job_1"]) == 0
        assert subject.store.stats().unacknowledged == 2
        assert subject.store.acknowledge(None) == 2
        assert subject.store.stats().unacknowledged == 0

    def test_statistics_count_everything(self, subject: Subject) -> None:
        """States, redeliveries, conflicts, waiting reasons and the oldest that waits."""
        for state in ("expected", "claimed", "running", "done", "dead"):
            bring_to(subject, f"job_{state}", state)
        subject.deliver("job_done", "job.failed")
        subject.let_pass(HOUR)
        stats = subject.store.stats()
        assert stats.states == {"expected": 1, "claimed": 1, "running": 1, "done": 1, "dead": 1}
        assert (stats.redelivered, stats.conflicts, stats.quarantined, stats.unacknowledged) == (1, 1, 0, 0)
        assert 3600 <= stats.oldest_waiting_seconds < 3700
        subject.store.lose_leases(limit=9)
        assert subject.store.stats().waiting == {"worker_lost": 1}

    def test_nothing_waits_in_an_empty_store(self, subject: Subject) -> None:
        """Zero, not an error."""
        stats = subject.store.stats()
        assert (stats.states, stats.oldest_waiting_seconds, stats.last_test_at) == ({}, 0.0, None)

    def test_the_audit_sees_every_job_with_an_event(self, subject: Subject) -> None:
        """With state, reason and the recorded files."""
        for state in ("expected", "claimed", "done", "dead"):
            bring_to(subject, f"job_{state}", state)
        found = {record.job_id: record for record in subject.store.audit()}
        assert set(found) == {"job_claimed", "job_done", "job_dead"}
        assert found["job_done"].artifacts == (FILE,)
        assert (found["job_dead"].state, found["job_dead"].reason) == ("dead", "integrity_failed")

    def test_an_alert_is_not_repeated_within_its_time(self, subject: Subject) -> None:
        """Held back ones are counted and told with the next."""
        store = subject.store
        assert store.may_alert("host", "a", every=HOUR) == 0
        assert [store.may_alert("host", "a", every=HOUR) for _ in range(3)] == [None, None, None]
        assert store.may_alert("host", "b", every=HOUR) == 0
        subject.let_pass(HOUR)
        assert store.may_alert("host", "a", every=HOUR) == 3
        assert store.may_alert("host", "a", every=HOUR) is None

    def test_a_parked_job_does_not_count_as_waiting_for_a_worker(self, subject: Subject) -> None:
        """`oldest_waiting_seconds` is about jobs that could be worked on now."""
        subject.deliver("job_a")
        lease = subject.take("job_a")
        subject.store.hand_back("job_a", token=lease.token, reason=Reason.HOST_NOT_ALLOWED, error="host x", wait=STALE)
        assert subject.store.stats().oldest_waiting_seconds == 0.0
