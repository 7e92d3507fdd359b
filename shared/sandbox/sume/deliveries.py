"""The signed deliveries of the simulated Sume and their retries."""

import http.client
import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from shared import clock
from shared.sandbox.sume.jobs import Job
from shared.sandbox.wheels import SandboxError
from shared.sume.signature import sign

NO_ANSWER = 0
"""In place of a status code when there was none: refused, reset or too slow."""


@dataclass(slots=True)
class Deliveries:
    """Sume's rule: an attempt waits 10 s for a 2xx; after anything else it is made again, 10 times in all."""

    secret: bytes
    webhook_url: str | None
    attempts: int = 10
    attempt_timeout: timedelta = timedelta(seconds=10)
    retry_wait: timedelta = timedelta(0)
    signature_header: str = "X-Sume-Signature"
    timestamp_header: str = "X-Sume-Timestamp"
    codes: dict[str, list[int]] = field(default_factory=dict)
    """The status code of every attempt, by job."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def deliver(self, job: Job, *, times: int, at_once: bool) -> list[int]:
        """Deliver a job's event `times` times, one after the other or all at once; return the last code of each."""
        if not job.ended:
            raise SandboxError(f"{job.job_id} is {job.outcome}: there is nothing to deliver")
        if not at_once:
            return [self._deliver_once(job) for _ in range(times)]
        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(self._deliver_once, [job] * times))

    def send_test(self, webhook_url: str | None) -> int:
        """Make one attempt at delivering `webhook.test`; return its code."""
        return self.post(json.dumps({"event": "webhook.test"}).encode(), url=webhook_url)

    def post(
        self,
        body: bytes,
        *,
        url: str | None = None,
        secret: bytes | None = None,
        timestamp: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Sign any body now and send it once; return the status code, or NO_ANSWER."""
        target = url or self.webhook_url
        if target is None:
            raise SandboxError("the simulated Sume knows no webhook URL")
        moment = timestamp or str(int(clock.unix_seconds()))
        signed = {
            "Content-Type": "application/json",
            self.timestamp_header: moment,
            self.signature_header: sign(secret or self.secret, timestamp=moment, body=body),
        }
        parts = urlsplit(target)
        connection = http.client.HTTPConnection(parts.netloc, timeout=self.attempt_timeout.total_seconds())
        try:
            connection.request("POST", target.partition(parts.netloc)[2] or "/", body, signed | dict(headers or {}))
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return NO_ANSWER
        finally:
            connection.close()

    def _deliver_once(self, job: Job) -> int:
        code = NO_ANSWER
        for attempt in range(self.attempts):
            if attempt and self.stopping.wait(self.retry_wait.total_seconds()):
                break
            code = self.post(job.delivery_body(), url=job.webhook_url)
            self.codes.setdefault(job.job_id, []).append(code)
            if code // 100 == 2:  # noqa: PLR2004 - any 2xx
                break
        return code
