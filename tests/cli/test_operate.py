"""What `expect`, `requeue`, `ack` and `prune` promise."""

from datetime import timedelta

import pytest

from shared.claims.states import Reason
from shared.queue import Queue, open_queue
from tests.claims.postgres_subject import PostgresSubject
from tests.cli.conftest import Cli
from tests.conformance.leasing import bring_to
from tests.conftest import MakeSettings

HOUR = timedelta(hours=1)


@pytest.fixture
def queue(make_settings: MakeSettings, redis_url: str) -> Queue:
    """The queue that messages go to."""
    return open_queue(make_settings(redis_url=redis_url))


def test_an_expected_job_is_registered_once(cli: Cli, subject: PostgresSubject) -> None:
    """Known ones stay as they are, which is no failure."""
    url = "https://api.open.sume.com/v1/jobs/job_a/status"
    ran = cli("expect", "job_a", "--status-url", url, "--due-in", "60")
    assert (ran.code, "asked for in 60 s" in ran.out) == (0, True)
    assert "polling is off (SUME_API_KEY is not set)" in ran.err
    job = subject.store.get_job("job_a")
    assert job is not None
    assert (job.state, job.status_url) == ("expected", url)
    assert job.next_look_at is not None
    assert timedelta(seconds=55) < job.next_look_at - job.updated_at <= timedelta(seconds=60)
    again = cli("expect", "job_a")
    assert (again.code, again.out, again.err) == (0, "job_a is known already; nothing was changed\n", "")


def test_a_dead_job_is_reopened_and_queued(cli: Cli, subject: PostgresSubject, queue: Queue) -> None:
    """At once, not at the next sweep."""
    bring_to(subject, "job_a", "dead")
    ran = cli("requeue", "job_a")
    assert (ran.code, ran.out, ran.err) == (0, "requeued: 1\n", "")
    assert subject.state("job_a") == "claimed"
    assert queue.waiting_ids() == {"job_a"}


def test_what_cannot_be_reopened_fails_and_the_rest_is_done(cli: Cli, subject: PostgresSubject) -> None:
    """Unknown jobs and such as are not dead, each with its reason; --force runs a done one again."""
    for state in ("dead", "done", "claimed"):
        bring_to(subject, f"job_{state}", state)
    ran = cli("requeue", "job_nobody", "job_done", "job_claimed", "job_dead")
    assert (ran.code, ran.out) == (1, "requeued: 1\n")
    assert ran.err.splitlines() == [
        "error: job_nobody is unknown",
        "error: job_done is done, not dead; --force runs it again",
        "error: job_claimed is claimed, not dead",
    ]
    assert cli("requeue", "job_done", "--force").out == "requeued: 1\n"
    assert subject.state("job_done") == "claimed"


def test_a_pruned_job_cannot_run_again(cli: Cli, subject: PostgresSubject) -> None:
    """Even with --force, and it says why."""
    bring_to(subject, "job_a", "done")
    cli("prune", "--older-than", "0")
    ran = cli("requeue", "job_a", "--force")
    assert (ran.code, "details are pruned" in ran.err) == (1, True)


def test_dead_jobs_are_reopened_by_reason_and_age(cli: Cli, subject: PostgresSubject, queue: Queue) -> None:
    """All that match, and no other."""
    bring_to(subject, "job_old", "dead")
    subject.let_pass(3 * HOUR)
    bring_to(subject, "job_new", "dead")
    subject.deliver("job_other")
    lease = subject.take("job_other")
    subject.store.bury("job_other", token=lease.token, reason=Reason.TIMED_OUT, error="slow")
    assert cli("requeue", "--state", "dead", "--reason", "integrity_failed", "--since", "2h").out == "requeued: 1\n"
    assert queue.waiting_ids() == {"job_new"}
    assert cli("requeue", "--state", "dead", "--since", "2020-01-01T00:00:00Z").out == "requeued: 2\n"
    assert cli("requeue", "--state", "dead").out == "requeued: 0\n"


def test_redis_away_is_told_and_is_no_failure(cli: Cli, subject: PostgresSubject) -> None:
    """The job is reopened, and the sweep queues it; nothing but the count is on stdout."""
    bring_to(subject, "job_a", "dead")
    cli.set(redis_url="redis://127.0.0.1:1")
    ran = cli("requeue", "job_a")
    assert (ran.code, ran.out) == (0, "requeued: 1\n")
    assert "the scheduler's sweep will queue what was reopened" in ran.err
    subject.let_pass(HOUR)
    assert [m.job_id for m in subject.store.overdue_claims(limit=9, stale=HOUR)] == ["job_a"]


def test_error_jobs_are_marked_as_seen(cli: Cli, subject: PostgresSubject) -> None:
    """By name or all; an unknown name fails, after the known ones are marked."""
    for number in range(4):
        subject.deliver(f"job_{number}", "job.failed")
    assert cli("ack", "job_0").out == "newly marked as seen: 1\n"
    ran = cli("ack", "job_0", "job_1", "job_nobody")
    assert (ran.code, ran.out, ran.err) == (1, "newly marked as seen: 1\n", "error: job_nobody is unknown\n")
    assert cli("ack", "--all").out == "newly marked as seen: 2\n"


def test_pruning_follows_retention(cli: Cli, subject: PostgresSubject) -> None:
    """A dry run only counts; RETENTION_DAYS is the default, and 0 keeps everything."""
    for number in range(3):
        bring_to(subject, f"job_{number}", "done")
    subject.let_pass(48 * HOUR)
    bring_to(subject, "job_new", "done")
    assert "jobs: 0," in cli("prune").out
    cli.set(retention_days="0")
    assert "everything is kept" in cli("prune").out
    cli.set(retention_days="1.5")
    assert cli("prune", "--dry-run").out == "would prune jobs: 3, quarantined deliveries: 0\n"
    assert cli("prune", "--dry-run", "--older-than", "0").out == "would prune jobs: 4, quarantined deliveries: 0\n"
    assert cli("prune").out == "pruned jobs: 3, quarantined deliveries: 0\n"
    assert cli("prune").out == "pruned jobs: 0, quarantined deliveries: 0\n"
