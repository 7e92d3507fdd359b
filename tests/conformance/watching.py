"""What is promised to whoever watches over the whole: signs of life, counts, alerts told once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from shared.claims.watch import HeldBack
from tests.conformance.subject import Subject

MINUTE = timedelta(minutes=1)
EVERY = 5 * MINUTE


class WatchingConformance:
    """Inherited by the tests of each store, which give `subject`."""

    def test_a_role_is_silent_since_its_last_beat(self, subject: Subject) -> None:
        """The latest of any of its processes counts, and none of another role; none at all is None."""
        store = subject.store
        assert store.silent_for("worker") is None
        store.beat("worker", "a")
        store.beat("worker", "b")
        subject.let_pass(3 * MINUTE)
        store.beat("scheduler", "c")
        silent = store.silent_for("worker")
        assert silent is not None
        assert 3 * MINUTE <= silent < 4 * MINUTE
        assert store.stats().alive == {"worker": 0, "scheduler": 1}
        store.beat("worker", "a")
        again = store.silent_for("worker")
        assert again is not None
        assert again < MINUTE
        assert store.stats().alive == {"worker": 1, "scheduler": 1}

    def test_what_is_long_gone_is_forgotten_but_for_the_last_of_its_role(self, subject: Subject) -> None:
        """So that restarts leave no rows behind, and a role that is gone can still be said when it was seen."""
        store = subject.store
        for number in range(5):
            store.beat("worker", str(number))
        subject.let_pass(120 * MINUTE)
        store.beat("scheduler", "s")
        assert store.silent_for("worker") is not None
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: store.beat("worker", name), "abcd"))
        subject.let_pass(120 * MINUTE)
        store.beat("worker", "a")  # its own row is as old as those that go
        assert store.stats().alive["worker"] == 1
        subject.let_pass(61 * MINUTE)
        store.beat("scheduler", "s")
        silent = store.silent_for("worker")
        assert silent is not None
        assert silent > 60 * MINUTE

    def test_the_intake_is_told_as_it_was_counted(self, subject: Subject) -> None:
        """How many were taken and repeated, and by code what was refused, when, and with which headers."""
        store = subject.store
        nothing = store.intake_facts()
        assert (nothing.accepted, nothing.accepted_ago, nothing.redelivered, nothing.refusals) == (0, None, 0, ())
        store.count({"accepted": 3, "redelivered": 1, "webhook.test": 1, "secret:ab12": 3}, details={})
        subject.let_pass(11 * MINUTE)
        store.count({"refused:bad_signature": 2}, details={"refused:bad_signature": "host, x-sig"})
        store.count({"refused:bad_signature": 2, "refused:missing_signature": 1}, details={})
        facts = store.intake_facts()
        assert facts.accepted_ago is not None
        assert (facts.accepted, facts.redelivered) == (3, 1)
        assert 11 * MINUTE <= facts.accepted_ago < 12 * MINUTE
        assert [(r.code, r.count, r.headers) for r in facts.refusals] == [
            ("bad_signature", 4, "host, x-sig"),
            ("missing_signature", 1, None),
        ]
        assert all(refusal.ago < MINUTE for refusal in facts.refusals)

    def test_the_use_of_a_secret_is_remembered_by_its_tag(self, subject: Subject) -> None:
        """With the time of its last use, and not as a refusal."""
        subject.store.count({"secret:ab12": 3, "accepted": 1}, details={})
        subject.let_pass(MINUTE)
        subject.store.count({"secret:cd34": 1}, details={})
        stats = subject.store.stats()
        assert set(stats.secrets_used) == {"ab12", "cd34"}
        assert MINUTE <= stats.secrets_used["cd34"] - stats.secrets_used["ab12"] < 2 * MINUTE
        assert stats.last_accepted_at is not None
        assert stats.refused == {}

    def test_one_alert_of_a_kind_goes_out_in_its_time(self, subject: Subject) -> None:
        """Of any number of processes one may; the next that may is told how many were held back."""
        store = subject.store
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: store.may_alert("job_dead", "", every=EVERY), range(8)))
        assert sorted(answers, key=str) == [0, *[None] * 7]
        assert store.may_alert("job_failed", "", every=EVERY) == 0
        subject.let_pass(EVERY)
        assert store.may_alert("job_dead", "", every=EVERY) == 7
        assert store.may_alert("job_failed", "", every=EVERY) == 0

    def test_what_was_held_back_is_taken_once(self, subject: Subject) -> None:
        """After its time, of the kinds asked for, without those about one subject; and nothing is taken twice."""
        store = subject.store
        for kind, subject_of in (("a", ""), ("b", ""), ("c", ""), ("a", "host")):
            for _ in range(3):
                store.may_alert(kind, subject_of, every=EVERY)
        store.may_alert("d", "", every=EVERY)
        assert store.take_held_back(["a", "b", "d"], every=EVERY) == []
        subject.let_pass(EVERY)
        taken = store.take_held_back(["a", "b", "d"], every=EVERY)
        assert sorted(taken, key=lambda held: held.kind) == [HeldBack("a", 2), HeldBack("b", 2)]
        assert store.take_held_back(["a", "b", "d"], every=EVERY) == []
        assert store.may_alert("a", "", every=EVERY) is None, "a digest is an alert of its kind"
