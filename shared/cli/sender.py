"""One sender of signed deliveries."""

from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from shared import clock
from shared.config import Settings
from shared.sume.signature import sign

TIMEOUT = timedelta(seconds=15)
"""More than the 10 s that Sume waits, so that an answer too slow for Sume is seen for what it is."""
LONGEST_TEXT = 300


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one delivery."""

    code: int | None
    """None where no answer came."""
    problem: str = ""

    @property
    def accepted(self) -> bool:
        """Whether Sume would be content."""
        return self.code is not None and httpx.codes.is_success(self.code)


class Sender:
    """Signs and sends over one kept connection; its texts hold no secret and no signature (I9)."""

    def __init__(self, settings: Settings, *, url: str, secret: bytes) -> None:
        self._settings = settings
        self._url = url
        self._secret = secret
        self._client = httpx.Client(timeout=TIMEOUT.total_seconds(), trust_env=False)

    def send(self, body: bytes, *, timestamp: str | None) -> Delivery:
        """Send the body once, signed now unless told otherwise."""
        timestamp = timestamp or str(int(clock.unix_seconds()))
        headers = {
            "Content-Type": "application/json",
            self._settings.sume_timestamp_header: timestamp,
            self._settings.sume_signature_header: sign(self._secret, timestamp=timestamp, body=body),
        }
        place = urlsplit(self._url).netloc.rpartition("@")[2]
        try:
            answer = self._client.post(self._url, content=body, headers=headers)
        except httpx.TimeoutException:
            return Delivery(None, f"no answer from {place} within {TIMEOUT.total_seconds():.0f} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Delivery(None, f"no answer from {place} ({error}); is the api running there?")
        return Delivery(answer.status_code, f"{answer.status_code} {explanation(answer)}".strip())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._client.close()


def explanation(answer: httpx.Response) -> str:
    """Return code and message of an answer in our error shape, or the start of another one's text."""
    try:
        error: Any = answer.json()["error"]
        return f"{error['code']}: {error['message']}"[:LONGEST_TEXT]
    except (ValueError, KeyError, TypeError):
        return answer.text[:LONGEST_TEXT]
