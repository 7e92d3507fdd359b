"""What claiming promises (I4)."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from shared.claims.records import Claim
from tests.conformance.subject import STALE, Subject, event


class ClaimingConformance:
    """Inherit it and give a `subject` fixture."""

    def test_the_first_delivery_is_new_and_every_later_one_counts(self, subject: Subject) -> None:
        """One delivery claims; the others only count."""
        first, second = subject.deliver("job_a"), subject.deliver("job_a", payload='{"other":true}')
        assert (first.new, second.new) == (True, False)
        assert (first.deliveries, second.deliveries) == (1, 2)
        assert subject.take("job_a").payload == '{"a":1}'

    def test_fifty_threads_claim_one_job_once(self, subject: Subject) -> None:
        """Of any number of claims at once exactly one is new, and every delivery is counted."""
        together = threading.Barrier(16)

        def claim(number: int) -> list[bool]:
            if number < 16:
                together.wait(10)
            return [subject.deliver(f"job_{key}").new for key in range(10)]

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(claim, range(48)))
        for key in range(10):
            assert [answer[key] for answer in answers].count(True) == 1
            record = subject.store.get_job(f"job_{key}")
            assert record is not None
            assert record.deliveries == 48

    def test_webhook_and_poll_at_once_are_one_claim(self, subject: Subject) -> None:
        """Webhook and polling go through the same claim, and only webhooks are deliveries."""
        subject.store.expect("job_a", status_url=None, due_in=timedelta(0))
        together = threading.Barrier(8)

        def claim(number: int) -> bool:
            together.wait(10)
            return subject.deliver("job_a", source="poll" if number % 2 else "webhook").new

        with ThreadPoolExecutor(8) as pool:
            news = list(pool.map(claim, range(8)))
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (Counter(news)[True], record.deliveries, record.state) == (1, 4, "claimed")

    def test_a_batch_may_hold_a_job_several_times(self, subject: Subject) -> None:
        """Within one batch the first is claimed, the rest count, and the results keep the order."""
        batch = [Claim(event(job_id)) for job_id in ("job_b", "job_a", "job_b", "job_b")]
        results = subject.store.claim_many(batch)
        assert [(r.job_id, r.new, r.deliveries) for r in results] == [
            ("job_b", True, 3),
            ("job_a", True, 1),
            ("job_b", False, 3),
            ("job_b", False, 3),
        ]

    def test_an_empty_batch_is_no_statement(self, subject: Subject) -> None:
        """Nothing claimed, nothing returned."""
        assert subject.store.claim_many([]) == []

    def test_two_batches_in_opposite_order_do_not_deadlock(self, subject: Subject) -> None:
        """Batches that share their keys in any order all succeed."""
        keys = [f"job_{n}" for n in range(500)]
        together = threading.Barrier(8)

        def claim(number: int) -> int:
            ordered = keys if number % 2 else list(reversed(keys))
            together.wait(10)
            return sum(r.new for r in subject.store.claim_many([Claim(event(key)) for key in ordered]))

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(claim, range(8))) == len(keys)

    def test_the_first_event_is_kept_byte_for_byte(self, subject: Subject) -> None:
        """Whatever strict JSON allows comes back exactly: BOM, escapes of NUL and surrogates, long numbers.

        A later body of the same job changes nothing of it.
        """
        body = (
            '\ufeff {"event" : "job.completed", "x": "\\u0000\\ud800", "n": 1e400, "big": 123456789012345678901234}\n'
        )
        subject.deliver("job_a", payload=body)
        subject.deliver("job_a", payload='{"event":"job.completed","later":true}')
        assert subject.take("job_a").payload == body

    def test_another_event_for_the_same_job_is_a_conflict_and_the_first_wins(self, subject: Subject) -> None:
        """A contradicting delivery is counted and shown, and changes nothing else."""
        subject.deliver("job_a", "job.failed")
        later = subject.deliver("job_a", "job.completed")
        assert (later.new, later.conflict, later.event, later.status) == (False, True, "job.failed", "ERROR")
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (record.event, record.conflict, record.conflict_with) == ("job.failed", True, "job.completed")
        assert not subject.deliver("job_a", "job.failed").conflict

    def test_a_conflict_inside_one_batch_is_seen(self, subject: Subject) -> None:
        """First arrival wins also inside one group commit."""
        batch = [Claim(event("job_a", "job.canceled")), Claim(event("job_a", "job.completed"))]
        first, second = subject.store.claim_many(batch)
        assert (first.new, first.conflict) == (True, False)
        assert (second.new, second.conflict, second.event) == (False, True, "job.canceled")
        record = subject.store.get_job("job_a")
        assert record is not None
        assert record.conflict_with == "job.completed"

    def test_a_status_that_contradicts_its_event_is_a_conflict(self, subject: Subject) -> None:
        """What the parser marked is kept."""
        contradicting = event("job_a", status="ERROR", conflict="status ERROR")
        [result] = subject.store.claim_many([Claim(contradicting)])
        record = subject.store.get_job("job_a")
        assert record is not None
        assert (result.conflict, record.conflict, record.status) == (True, True, "ERROR")

    def test_the_same_event_with_another_status_is_a_conflict(self, subject: Subject) -> None:
        """A later delivery that states another status is visible."""
        subject.deliver("job_a")
        assert subject.deliver("job_a", status="ERROR").conflict
        record = subject.store.get_job("job_a")
        assert record is not None
        assert record.conflict_with == "status ERROR"

    def test_a_duplicate_moves_only_last_seen_and_the_count(self, subject: Subject) -> None:
        """`updated_at` is the last change of state."""
        subject.deliver("job_a")
        subject.let_pass(timedelta(seconds=10))
        before = subject.store.get_job("job_a")
        subject.deliver("job_a")
        after = subject.store.get_job("job_a")
        assert before is not None
        assert after is not None
        assert (before.updated_at, before.first_seen) == (after.updated_at, after.first_seen)
        assert before.next_look_at == after.next_look_at
        assert before.last_seen is not None
        assert after.last_seen is not None
        assert after.last_seen > before.last_seen

    def test_the_event_of_an_expected_job_is_new(self, subject: Subject) -> None:
        """An expected row has no event, so its first delivery claims it and fills first_seen."""
        assert subject.store.expect("job_a", status_url="https://a/1", due_in=STALE)
        expected = subject.store.get_job("job_a")
        assert expected is not None
        assert (expected.state, expected.first_seen, expected.deliveries) == ("expected", None, 0)
        assert subject.deliver("job_a").new
        claimed = subject.store.get_job("job_a")
        assert claimed is not None
        assert (claimed.state, claimed.status_url, claimed.deliveries) == ("claimed", "https://a/1", 1)
        assert claimed.first_seen is not None

    def test_a_status_url_is_kept_when_the_row_has_none(self, subject: Subject) -> None:
        """A delivery's status_url fills an empty one."""
        subject.deliver("job_a", source="poll")
        subject.deliver("job_a")
        record = subject.store.get_job("job_a")
        assert record is not None
        assert record.status_url == "https://api.open.sume.com/v1/jobs/x/status"

    def test_expecting_a_known_job_changes_nothing(self, subject: Subject) -> None:
        """False says that the job was known."""
        subject.deliver("job_a")
        assert not subject.store.expect("job_a", status_url=None, due_in=STALE)
        assert subject.state("job_a") == "claimed"

    def test_a_plain_insert_is_a_whole_claim(self, subject: Subject) -> None:
        """Another receiver's insert starts claimed, counts, is due for the sweep at once, and can be worked on."""
        subject.plain_insert("job_demo")
        subject.plain_insert("job_demo")
        record = subject.store.get_job("job_demo")
        assert record is not None
        assert (record.state, record.deliveries, record.source) == ("claimed", 2, "webhook")
        assert record.first_seen is not None
        assert [m.job_id for m in subject.store.overdue_claims(limit=9, stale=STALE)] == ["job_demo"]
        assert subject.take("job_demo").payload == '{"event":"job.completed"}'
        assert not subject.deliver("job_demo").new

    def test_a_plain_insert_on_an_expected_job_makes_polling_due(self, subject: Subject) -> None:
        """The stranger's upsert cannot claim an expected row, so Sume is asked at once."""
        subject.store.expect("job_demo", status_url=None, due_in=timedelta(hours=1))
        subject.plain_insert("job_demo")
        assert subject.state("job_demo") == "expected"
        polls = subject.store.due_polls(limit=9, interval=STALE, maximum=STALE)
        assert [poll.job_id for poll in polls] == ["job_demo"]

    def test_quarantine_keeps_a_body_once_with_its_count(self, subject: Subject) -> None:
        """Any bytes are kept, the same bytes once."""
        for _ in range(3):
            subject.store.quarantine(b"\x00\xff not json", reason="invalid_json")
        subject.store.quarantine(b"{}", reason="unknown_event")
        assert subject.store.stats().quarantined == 2

    def test_counters_add_up(self, subject: Subject) -> None:
        """Refusals and tests are shown in the statistics."""
        subject.store.count({"refused:bad_signature": 2, "webhook.test": 1}, details={"refused:bad_signature": "host"})
        subject.store.count({"refused:bad_signature": 3}, details={})
        stats = subject.store.stats()
        assert stats.refused == {"bad_signature": 5}
        assert stats.refused_headers == {"bad_signature": ("host",)}
        assert stats.last_test_at is not None

    def test_a_healthy_store_can_be_written(self, subject: Subject) -> None:
        """The check of /readyz passes."""
        subject.store.check()
