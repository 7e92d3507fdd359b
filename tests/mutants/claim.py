"""The claim broken: who is new, what is kept, and when a message may be sent (I3, I4, I7)."""

from functools import partial

from tests.mutants.mutant import CLAIMING, LEASING, Mutant

SQL = "shared/claims/postgres/claiming.py"
FIRST_WINS = f"{CLAIMING}test_another_event_for_the_same_job_is_a_conflict_and_the_first_wins"
KEPT_EXACTLY = f"{CLAIMING}test_the_first_event_is_kept_byte_for_byte"
COUNTED = f"{CLAIMING}test_the_first_delivery_is_new_and_every_later_one_counts"
MOVES_ONLY = f"{CLAIMING}test_a_duplicate_moves_only_last_seen_and_the_count"
NEVER_REOPENS = f"{LEASING}test_done_never_reopens_by_a_late_delivery"

claim = partial(Mutant, "claim")

MUTANTS = (
    claim(
        "every delivery is new",
        SQL,
        "claim_id = CASE WHEN j.event IS NULL THEN excluded.claim_id ELSE j.claim_id END",
        "claim_id = excluded.claim_id",
        (COUNTED,),
    ),
    claim(
        "every delivery of a batch is new",
        SQL,
        "new=kept.first and event is self._folds[event.job_id].first",
        "new=kept.first",
        (f"{CLAIMING}test_a_batch_may_hold_a_job_several_times",),
    ),
    claim(
        "the event of an expected job is a duplicate",
        SQL,
        "claim_id = CASE WHEN j.event IS NULL THEN excluded.claim_id ELSE j.claim_id END",
        "claim_id = j.claim_id",
        (f"{CLAIMING}test_the_event_of_an_expected_job_is_new",),
    ),
    claim(
        "the last event wins",
        SQL,
        "event = coalesce(j.event, excluded.event)",
        "event = excluded.event",
        (FIRST_WINS,),
    ),
    claim(
        "the last body wins",
        SQL,
        "payload = CASE WHEN j.event IS NULL THEN excluded.payload ELSE j.payload END",
        "payload = excluded.payload",
        (KEPT_EXACTLY, FIRST_WINS),
    ),
    claim(
        "the last event of a batch wins",
        SQL,
        "fold = self._folds.setdefault(claim.event.job_id, Fold(claim.event))",
        "fold = self._folds[claim.event.job_id] = Fold(claim.event)",
        (f"{CLAIMING}test_a_conflict_inside_one_batch_is_seen", f"{CLAIMING}test_a_batch_may_hold_a_job_several_times"),
    ),
    claim(
        "deliveries are not added up",
        SQL,
        "deliveries = j.deliveries + excluded.deliveries",
        "deliveries = excluded.deliveries",
        (COUNTED,),
    ),
    claim(
        "a late delivery reopens a job that is done",
        SQL,
        "state = CASE WHEN j.event IS NULL THEN 'claimed' ELSE j.state END",
        "state = 'claimed'",
        (NEVER_REOPENS,),
    ),
    claim(
        "a duplicate puts off the sweep",
        SQL,
        "wake_at = CASE WHEN j.event IS NULL THEN excluded.wake_at ELSE j.wake_at END",
        "wake_at = excluded.wake_at",
        (MOVES_ONLY, NEVER_REOPENS),
    ),
    claim(
        "two batches lock their rows in different orders",
        SQL,
        "for job_id in sorted(self._folds)]",
        "for job_id in self._folds]",
        (f"{CLAIMING}test_two_batches_in_opposite_order_do_not_deadlock",),
    ),
    claim(
        "a message is sent for a duplicate too",
        "shared/intake.py",
        "for r in results if r.new]",
        "for r in results]",
        ("tests/test_intake.py::test_only_new_claims_are_enqueued_and_only_after_they_are_stored",),
    ),
    claim(
        "a message is sent before the claim is stored",
        "shared/intake.py",
        "        results = self._store.claim_many([Claim(event) for event in events])\n",
        "        self.enqueue([Message(e.job_id, e.name, e.status, 1) for e in events])\n"
        "        results = self._store.claim_many([Claim(event) for event in events])\n",
        ("tests/test_intake.py::test_nothing_is_enqueued_when_nothing_was_stored",),
    ),
    claim(
        "204 is answered before the claim is stored",
        "api/webhook.py",
        "await self._claim(delivery, deadline=deadline, started=started)",
        "self._early = asyncio.create_task(self._claim(delivery, deadline=deadline, started=started))",
        ("tests/api/test_deliveries.py::test_without_a_database_nothing_is_answered_2xx",),
    ),
    claim(
        "204 is answered before the claim is stored, where it came in one piece",
        "api/webhook.py",
        "self._group_commit.begin(event, settle, deadline=deadline)",
        "self._group_commit.begin(event, lambda _outcome: None, deadline=deadline); answering.accept()",
        ("tests/api/test_whole_requests.py::test_nothing_is_answered_before_the_claim_is_durable",),
    ),
    claim(
        "a commit may be lost in a power cut",
        "shared/claims/postgres/database.py",
        "set_config('synchronous_commit', 'on', false)",
        "set_config('synchronous_commit', 'off', false)",
        ("tests/claims/test_outages.py::test_a_claim_is_durable_whatever_the_database_prefers",),
    ),
)
