"""Whether Sume's API takes our key, and what time it is there."""

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime

import httpx

from shared import clock
from shared.config import Settings
from shared.errors import SumeApiError
from shared.sume.api import SumeApi
from shared.sume.bounded_http import BoundedTransport

TIMEOUT = timedelta(seconds=5)
NO_JOB = "sume-jobs-check"
"""A job that does not exist: asking for it costs nothing and tells whether the key is taken."""
KEY_TAKEN = frozenset({400, 404, 422})
"""Answers about a job that does not exist, which only a caller with a good key is given."""
DATE_PRECISION = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SumeAnswer:
    """What was learned from Sume."""

    problem: str | None = None
    """Why the key cannot be used, None when it can or there is none."""
    ahead: timedelta | None = None
    """How far Sume's clock is ahead of ours, None where it could not be read."""


def ask_sume(settings: Settings) -> SumeAnswer:
    """Ask Sume about a job that does not exist; without a key nothing is asked."""
    if settings.sume_api_key is None:
        return SumeAnswer()
    base_url, key = settings.sume_api_base_url, settings.sume_api_key.get_secret_value()
    problem = None
    with closing(SumeApi(base_url, api_key=key, timeout=TIMEOUT)) as api:
        try:
            api.status(NO_JOB)
        except SumeApiError as error:
            if error.http_status not in KEY_TAKEN:
                problem = str(error)
    return SumeAnswer(problem, read_clock(base_url))


def read_clock(base_url: str) -> timedelta | None:
    """Return how far the Date of any answer, given without our key, is ahead of our clock."""
    before = clock.now()
    try:
        with httpx.Client(transport=BoundedTransport(timeout=TIMEOUT), trust_env=False) as client:
            answer = client.get(base_url, headers={"Accept-Encoding": "identity"})
        date = parsedate_to_datetime(answer.headers["Date"])
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError, TypeError):
        return None
    after = clock.now()
    if date.tzinfo is None:
        return None
    # It names the second in which it was sent, so anything between the two ends is no difference.
    earliest, latest = date - after, date + DATE_PRECISION - before
    if earliest <= timedelta(0) <= latest:
        return timedelta(0)
    return earliest if earliest > timedelta(0) else latest
