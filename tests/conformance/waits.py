"""What is told about jobs that have waited for long."""

from datetime import timedelta

from shared.claims.states import Reason
from tests.conformance.hosts import open_circuit, wait_for_host
from tests.conformance.subject import Subject

HALF_AN_HOUR = timedelta(minutes=30)
MINUTE = timedelta(minutes=1)


class WaitsConformance:
    """Inherit it and give a `subject` fixture."""

    def test_what_jobs_have_waited_for_is_counted_by_reason(self, subject: Subject) -> None:
        """With the oldest of each; young ones, other reasons and those that wait for a circuit are left out."""
        open_circuit(subject)
        wait_for_host(subject, "job_circuit")
        release(subject, "job_old", Reason.HANDLER_FAILED)
        release(subject, "job_file", Reason.INTEGRITY_FAILED)
        release(subject, "job_storage", Reason.STORAGE_FAILED)
        subject.deliver("job_running")
        subject.deliver("job_new")
        subject.take("job_running")
        subject.let_pass(10 * MINUTE)
        release(subject, "job_next", Reason.HANDLER_FAILED)
        subject.let_pass(HALF_AN_HOUR)
        release(subject, "job_young", Reason.HANDLER_FAILED)
        storage, handler = sorted(
            subject.store.long_waits(
                [Reason.HANDLER_FAILED, Reason.STORAGE_FAILED, Reason.DOWNLOAD_FAILED], longer_than=HALF_AN_HOUR
            ),
            key=lambda wait: wait.jobs,
        )
        assert (storage.reason, storage.jobs, storage.job_id) == (Reason.STORAGE_FAILED, 1, "job_storage")
        assert (handler.reason, handler.jobs, handler.job_id) == (Reason.HANDLER_FAILED, 2, "job_old")
        assert handler.longest >= 40 * MINUTE


def release(subject: Subject, job_id: str, reason: Reason) -> None:
    """Let an attempt at a new job fail."""
    subject.deliver(job_id)
    lease = subject.take(job_id)
    assert subject.store.release(job_id, token=lease.token, reason=reason, error="no", wait=MINUTE)
