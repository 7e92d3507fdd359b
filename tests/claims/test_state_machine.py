"""Random histories of one job against real PostgreSQL: only the transitions of shared.claims.states happen."""

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID, uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from shared.claims.states import TRANSITIONS, Reason
from shared.event import EventName
from tests.claims.postgres_subject import PostgresSubject
from tests.conformance.leasing import FILE
from tests.conformance.subject import LEASE, MAX_ATTEMPTS, STALE

EVENTS = st.sampled_from(["job.completed", "job.failed", "job.canceled"])
RELEASES = st.sampled_from([Reason.DOWNLOAD_FAILED, Reason.INTEGRITY_FAILED, Reason.STORAGE_FAILED])


class History(RuleBasedStateMachine):
    """One job, several workers (some with lost leases), webhooks, polls, sweeps and an operator."""

    subject: ClassVar[PostgresSubject]

    def __init__(self) -> None:
        super().__init__()
        self.job_id = f"job_{uuid4().hex}"
        self.state: str | None = None
        self.event: str | None = None
        self.deliveries = 0
        self.news = 0
        self.held: UUID | None = None
        self.old_tokens: list[UUID] = []

    def moved(self) -> None:
        """Check the step from the state before to the state now."""
        record = self.subject.store.get_job(self.job_id)
        now = record.state if record else None
        if self.state is not None and now != self.state:
            assert (self.state, now) in TRANSITIONS
        self.state = now
        if now != "running" and self.held is not None:
            self.old_tokens.append(self.held)
            self.held = None

    @rule(name=EVENTS, poll=st.booleans())
    def claim(self, name: EventName, poll: bool) -> None:  # noqa: FBT001 - hypothesis passes by name
        result = self.subject.deliver(self.job_id, name, source="poll" if poll else "webhook")
        assert result.new == (self.event is None)
        self.event = self.event or name
        assert result.event == self.event
        self.deliveries += not poll
        self.news += result.new
        self.moved()

    @rule()
    def expect(self) -> None:
        known = self.subject.store.get_job(self.job_id) is not None
        assert self.subject.store.expect(self.job_id, status_url=None, due_in=timedelta(0)) != known
        self.moved()

    @rule()
    def take(self) -> None:
        lease = self.subject.try_take(self.job_id)
        assert lease is None or self.state == "claimed"
        if lease is not None:
            assert lease.exhausted == (lease.strikes >= MAX_ATTEMPTS)
            self.held = lease.token
        self.moved()

    @precondition(lambda self: self.held is not None)
    @rule(how=st.sampled_from(["finish", "release", "hand_back", "bury", "renew"]), reason=RELEASES)
    def use_the_lease(self, how: str, reason: Reason) -> None:
        assert self.held is not None
        assert self.use(how, self.held, reason)
        self.moved()

    @precondition(lambda self: self.old_tokens)
    @rule(how=st.sampled_from(["finish", "release", "hand_back", "bury", "renew"]), data=st.data())
    def use_a_lost_lease(self, how: str, data: Any) -> None:
        token = data.draw(st.sampled_from(self.old_tokens))
        before = self.subject.store.get_job(self.job_id)
        assert not self.use(how, token, Reason.DOWNLOAD_FAILED)
        assert self.subject.store.get_job(self.job_id) == before

    def use(self, how: str, token: UUID, reason: Reason) -> bool:
        store, wait = self.subject.store, timedelta(0)
        match how:
            case "finish":
                return store.finish(self.job_id, [FILE], token=token, acknowledged=False)
            case "release":
                return store.release(self.job_id, token=token, reason=reason, error="e", wait=wait)
            case "hand_back":
                return store.hand_back(self.job_id, token=token, reason=reason, error="e", wait=wait)
            case "bury":
                return store.bury(self.job_id, token=token, reason=reason, error="e")
            case _:
                return store.renew(self.job_id, token=token, lease=LEASE)

    @rule()
    def give_up(self) -> None:
        buried = self.subject.store.bury(self.job_id, token=None, reason=Reason.POLL_GAVE_UP, error="e")
        assert buried == (self.state == "expected")
        self.moved()

    @rule(time=st.sampled_from([timedelta(seconds=1), LEASE, STALE]))
    def sweep_after(self, time: timedelta) -> None:
        self.subject.let_pass(time)
        self.subject.store.lose_leases(limit=1_000)
        self.subject.store.overdue_claims(limit=1_000, stale=STALE)
        self.moved()

    @rule(force=st.booleans())
    def requeue(self, force: bool) -> None:  # noqa: FBT001 - hypothesis passes by name
        requeued = self.subject.store.requeue(self.job_id, force=force)
        if self.state == "dead" or (force and self.state == "done"):
            assert requeued.outcome == ("expected" if self.event is None else "requeued")
        else:
            assert requeued.outcome in {"not_dead", "unknown"}
        self.moved()

    @invariant()
    def the_row_agrees_with_what_happened(self) -> None:
        record = self.subject.store.get_job(self.job_id)
        if record is not None:
            assert record.deliveries == self.deliveries
            assert record.event == self.event
            assert (record.state in {"done", "dead"}) == (record.next_look_at is None)
        assert self.news <= 1


def test_any_history_keeps_to_the_state_machine(database_url: str) -> None:
    """Whatever happens in whatever order, one claim is new, lost leases change nothing, and no state is skipped."""
    subject = PostgresSubject(database_url)
    run_state_machine_as_test(
        type("HistoryOfOneJob", (History,), {"subject": subject}),
        settings=settings(
            max_examples=30, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    subject.store.close()
