"""Sume's job API, one bounded request a call, through the official client."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx
from sume_client import SumeClientError  # type: ignore[import-untyped]  # sume-client ships no types
from sume_client.http.client import USER_AGENT, RequestController  # type: ignore[import-untyped]  # the same
from sume_client.http.retry import NoRetry  # type: ignore[import-untyped]  # the same
from sume_client.http.transport import HttpTransport  # type: ignore[import-untyped]  # the same

from shared import clock
from shared.errors import SumeApiError
from shared.event import Artifact, EventName
from shared.sume.artifacts import find_artifacts
from shared.sume.bounded_http import BoundedTransport
from shared.sume.origin import same_origin
from shared.sume.payload import error_keys
from shared.sume.retry_after import parse_retry_after
from shared.sume.strict_json import read_object

ENDS: Mapping[str, EventName] = {
    "completed": "job.completed",
    "failed": "job.failed",
    "nsfw": "job.failed",
    "canceled": "job.canceled",
}
"""The event that each final `sume_status` stands for; any other has not ended."""
ERROR_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What Sume says about a job."""

    ended: EventName | None
    """The event that a webhook would have told; None while the job has not ended, or in a state we do not know."""
    error: Mapping[str, str] | None
    """Sume's error (`code`, `message`, `public_reason`), where the job ended with one."""


class SumeApi:
    """Asks Sume about jobs; safe to use from several threads.

    Every question raises SumeApiError where there is no usable answer; its text holds no secret and no query (I9).
    """

    def __init__(self, base_url: str, *, api_key: str, timeout: timedelta = timedelta(seconds=10)) -> None:
        self._base_url = base_url
        self._client = httpx.Client(
            headers={
                "Authorization": b"Bearer " + api_key.encode(),
                "Accept": b"application/json",
                "Accept-Encoding": b"identity",
                "User-Agent": USER_AGENT.encode(),
            },
            transport=BoundedTransport(timeout=timeout),
            trust_env=False,  # a .netrc must not replace the key
        )
        self._transport = HttpTransport(self._client, NoRetry())

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def status(self, job_id: str, *, status_url: str | None = None) -> JobStatus:
        """Ask whether a job ended; a status_url of another origin is not asked, Sume's usual address is instead."""
        if status_url is None or not same_origin(status_url, self._base_url):
            status_url = self._urls(job_id)["status_url"]
        data = self._ask(job_id, status_url)
        stated = data.get("sume_status")
        ended = ENDS.get(stated) if isinstance(stated, str) else None
        job = data.get("job")
        error = job.get("error") if ended not in (None, "job.completed") and isinstance(job, dict) else None
        return JobStatus(ended=ended, error=error_keys(error))

    def result(self, job_id: str) -> list[Artifact]:
        """Ask for the artifacts of a completed job; an empty list means that Sume says there are none."""
        data = self._ask(job_id, self._urls(job_id)["response_url"])
        if data.get("status") not in (None, "COMPLETED"):
            raise SumeApiError("Sume's API answered for a job that is not completed")
        artifacts = find_artifacts({"data": data})
        if artifacts is None:
            raise SumeApiError("Sume's API answered without an artifact list")
        return artifacts

    def _urls(self, job_id: str) -> dict[str, str]:
        urls: dict[str, str] = RequestController.build_urls(self._base_url, job_id)
        return urls

    def _ask(self, job_id: str, url: str) -> dict[str, Any]:
        """Return the `data` of one answer about this very job."""
        response = self._get(url)
        try:
            answer, _ = read_object(response.content)
        except ValueError:
            raise SumeApiError(
                "Sume's API answered with something that is not JSON", http_status=response.status_code
            ) from None
        data = answer.get("data")
        if not isinstance(data, dict):
            raise SumeApiError("Sume's API answered without data", http_status=response.status_code)
        job = data.get("job")
        names = (data.get("request_id"), job.get("id") if isinstance(job, dict) else None)
        if any(name not in (None, job_id) for name in names):
            raise SumeApiError("Sume's API answered about another job", http_status=response.status_code)
        return data

    def _get(self, url: str) -> httpx.Response:
        """Request a URL's target, byte for byte, from our own origin and no other, so that the key never leaves it."""
        ours, target = urlsplit(self._base_url), target_of(url)
        place = f"{authority(ours)}{target.partition('?')[0]}"
        try:
            response: httpx.Response = self._transport.request(
                "GET", f"{ours.scheme}://{authority(ours)}/", extensions={"target": target.encode()}
            )
        except SumeClientError as error:
            raise refusal(error, place) from None  # its text may repeat what was sent
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SumeApiError(f"GET {place}: {error}") from None
        except RecursionError:
            raise SumeApiError(f"GET {place}: an error that is nested too deeply") from None
        return response


def authority(parts: SplitResult) -> str:
    """Return host and port without a user."""
    return parts.netloc.rpartition("@")[2]


def target_of(url: str) -> str:
    """Return path and query exactly as they stand in a URL."""
    after = re.sub(r"^[^:/?#]+://[^/?#]*", "", url).partition("#")[0]
    return after if after.startswith("/") else f"/{after}"


def refusal(error: SumeClientError, place: str) -> SumeApiError:
    """Translate an answer that is not 2xx, keeping its status, its code and how long to wait."""
    answer: httpx.Response = error.__cause__.response
    code = f" ({error.code})" if isinstance(error.code, str) and ERROR_CODE.fullmatch(error.code) else ""
    return SumeApiError(
        f"GET {place}: Sume's API answered {answer.status_code}{code}",
        http_status=answer.status_code,
        retry_after=parse_retry_after(answer.headers.get("Retry-After"), now=clock.now()),
    )
