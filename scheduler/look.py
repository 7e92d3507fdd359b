"""One look at an expected job: ask Sume, then claim it, wait for it, or give it up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Protocol, Self

from shared.alerts import Alerts
from shared.burial import BuryingStore, bury
from shared.claims.records import ExpectedJob
from shared.claims.states import Reason
from shared.config import Settings
from shared.errors import SumeApiError
from shared.event import Artifact, EventName
from shared.intake import Intake
from shared.logs import get_logger
from shared.sume.api import JobStatus
from shared.sume.envelope import build_polled_event
from shared.sume.origin import same_origin

log = get_logger()

REFUSED_ALL = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS)
"""Answers about our key, not about one job: polling waits as a whole."""


class JobApi(Protocol):
    """The part of SumeApi that polling asks; each question is one request, with a deadline."""

    def status(self, job_id: str, *, status_url: str | None = None) -> JobStatus:
        """See SumeApi.status."""
        ...

    def result(self, job_id: str) -> list[Artifact]:
        """See SumeApi.result."""
        ...


class LookStore(BuryingStore, Protocol):
    """The part of the store that a look writes to, beside the claim."""

    def postpone_poll(self, job_id: str, *, wait: timedelta) -> None:
        """See SweepStore.postpone_poll."""
        ...


@dataclass(frozen=True, slots=True)
class PollTimes:
    """How often and for how long to ask."""

    interval: timedelta
    maximum: timedelta
    give_up: timedelta

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read them from the settings."""
        return cls(settings.seconds("poll_interval"), settings.seconds("poll_max"), settings.seconds("poll_give_up"))

    def wait_after(self, error: SumeApiError) -> timedelta | None:
        """Return how long Sume wants us to wait, between interval and maximum; None leaves the usual back-off."""
        if error.retry_after is None and error.http_status not in REFUSED_ALL:
            return None
        asked = timedelta(seconds=min(error.retry_after or 0, self.maximum.total_seconds()))
        return min(max(asked, self.interval), self.maximum)


class Looker:
    """Looks at jobs, in several threads at once. Without an `api` it asks nobody and gives up in time all the same."""

    def __init__(
        self,
        store: LookStore,
        intake: Intake,
        alerts: Alerts,
        *,
        api: JobApi | None,
        base_url: str,
        times: PollTimes,
    ) -> None:
        self._store = store
        self._intake = intake
        self._alerts = alerts
        self._api = api
        self._base_url = base_url
        self._times = times

    def look(self, job: ExpectedJob) -> SumeApiError | None:
        """Do all that one look needs; return what kept Sume from answering, None when it did answer.

        A job that ended is claimed; one that did not is asked again by its back-off, or later when Sume says so, or
        given up when its time is over. Raises StoreUnavailableError: then the job is asked again by its back-off.
        """
        if self._api is None:
            self._wait_or_bury(job, "SUME_API_KEY is not set, so it was not asked for", wait=None)
            return None
        if job.status_url is not None and not same_origin(job.status_url, self._base_url):
            log.warning("poll.status_url_ignored", job_id=job.job_id, why="it is not of SUME_API_BASE_URL's origin")
        try:
            status = self._api.status(job.job_id, status_url=job.status_url)
        except SumeApiError as error:
            about_job_alone = not is_about_api(error)
            (log.warning if about_job_alone else log.debug)("poll.failed", job_id=job.job_id, error=str(error))
            self._wait_or_bury(job, str(error), wait=self._times.wait_after(error))
            return error
        if status.ended is None:
            log.debug("poll.done", job_id=job.job_id, outcome="open", polls=job.polls)
            self._wait_or_bury(job, "Sume says that it has not ended", wait=None)
            return None
        return self._claim(job, status.ended, status.error, api=self._api)

    def _claim(
        self, job: ExpectedJob, ended: EventName, job_error: Mapping[str, str] | None, *, api: JobApi
    ) -> SumeApiError | None:
        """Claim a job that ended; without its artifact list when that cannot be had, as the worker looks it up."""
        artifacts, problem = None, None
        if ended == "job.completed":
            try:
                artifacts = api.result(job.job_id)
            except SumeApiError as error:
                problem = error
        event = build_polled_event(
            job.job_id, event=ended, status_url=job.status_url, error=job_error, artifacts=artifacts
        )
        [result] = self._intake.claim([event])
        log.info(
            "poll.done",
            job_id=job.job_id,
            outcome="claimed" if result.new else "known",
            event_named=ended,
            polls=job.polls,
            artifacts=None if artifacts is None else len(artifacts),
            result_error=None if problem is None else str(problem),
        )
        return problem if problem is not None and problem.http_status in REFUSED_ALL else None

    def _wait_or_bury(self, job: ExpectedJob, last_word: str, *, wait: timedelta | None) -> None:
        if job.expected_for >= self._times.give_up:
            error = f"did not end in {job.expected_for.total_seconds():.0f} s; last look: {last_word}"
            reason = Reason.POLL_GAVE_UP
            bury(job.job_id, store=self._store, alerts=self._alerts, token=None, reason=reason, error=error)
        elif wait is not None:
            self._store.postpone_poll(job.job_id, wait=wait)


def is_about_api(error: SumeApiError) -> bool:
    """Whether an error of SumeApi.status says that nothing can be asked now, rather than something about one job."""
    status = error.http_status
    return status is None or status in REFUSED_ALL or status >= HTTPStatus.INTERNAL_SERVER_ERROR
