"""Which files a job has: from its payload, or fresh from Sume's API (CONTRACT section 6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from shared.claims.records import Lease
from shared.claims.states import Reason
from shared.errors import PermanentError, RetryableError, SumeApiError
from shared.event import Artifact
from shared.sume.artifacts import artifacts

NOT_FOUND = 404


class ResultApi(Protocol):
    """The part of Sume's API that lists a job's files."""

    def result(self, job_id: str) -> list[Artifact]:
        """See SumeApi.result."""
        ...


class AskAgainError(RetryableError):
    """Sume's API did not answer; it may have said when to ask again."""

    def __init__(self, error: SumeApiError) -> None:
        super().__init__(Reason.SUME_API_FAILED, str(error))
        self.wait = timedelta(seconds=error.retry_after or 0)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one job; `fresh` says that Sume's API just listed them, so that asking again is pointless."""

    artifacts: tuple[Artifact, ...]
    fresh: bool


def list_artifacts(lease: Lease, *, api: ResultApi | None) -> Listing:
    """Return the files the payload names; where it names none, those Sume's API names, which may be none.

    Raises PermanentError (invalid_payload, or no_artifact_list when the API cannot be asked) and AskAgainError.
    """
    listed = artifacts(lease.payload)
    if listed:
        return Listing(tuple(listed), fresh=False)
    return Listing(tuple(ask(lease.job_id, api=api)), fresh=True)


def renew_urls(listing: Listing, *, lease: Lease, api: ResultApi | None) -> Listing:
    """Return the same files with the URLs Sume's API gives them now; what was promised about them stays promised.

    Raises as `list_artifacts`.
    """
    urls = {artifact.index: artifact.url for artifact in ask(lease.job_id, api=api)}
    return Listing(
        tuple(replace(known, url=urls.get(known.index, known.url)) for known in listing.artifacts), fresh=True
    )


def ask(job_id: str, *, api: ResultApi | None) -> Sequence[Artifact]:
    """Ask Sume's API for a job's files."""
    if api is None:
        message = "the event lists no artifacts, and without SUME_API_KEY Sume cannot be asked for them"
        raise PermanentError(message, reason=Reason.NO_ARTIFACT_LIST)
    try:
        return api.result(job_id)
    except SumeApiError as error:
        if error.http_status == NOT_FOUND:
            raise PermanentError(f"the event lists no artifacts, and {error}", reason=Reason.NO_ARTIFACT_LIST) from None
        raise AskAgainError(error) from None
