"""The control surface of the simulated Sume."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Self

from shared.sandbox.sume.answers import Answer
from shared.sandbox.sume.api import JobApi
from shared.sandbox.sume.content import Content
from shared.sandbox.sume.deliveries import Deliveries
from shared.sandbox.sume.jobs import Job
from shared.sandbox.sume.listener import Exchange, Listener
from shared.sandbox.sume.media import File
from shared.sandbox.sume.requests import RequestLog


class Sume:
    """A job API at `api_url` and artifact hosting at `media_url`, two origins, both in this process on 127.0.0.1.

    `retry_wait` is the pause between two attempts at a delivery. A stopped one can be started again on its ports.
    With `every_job` any job that is asked about exists: completed, with these bytes as its one picture.
    """

    def __init__(
        self,
        *,
        secret: str,
        api_key: str = "sandbox-api-key",
        webhook_url: str | None = None,
        retry_wait: timedelta = timedelta(0),
        every_job: bytes | None = None,
    ) -> None:
        self.api_key = api_key
        self._deliveries = Deliveries(secret.encode(), webhook_url, retry_wait=retry_wait)
        self._api = JobApi(
            api_key=api_key,
            origin=lambda: self.api_url,
            send_test=self._deliveries.send_test,
            invent=None if every_job is None else lambda job_id: self.add_job(job_id, artifacts=[every_job]),
        )
        self._files: dict[str, File] = {}
        self._api_listener = Listener(self._api.serve)
        self._media_listener = Listener(self._serve_file)

    @property
    def api_url(self) -> str:
        """SUME_API_BASE_URL of this Sume."""
        return self._api_listener.url

    @property
    def media_url(self) -> str:
        """The origin of all hosted files."""
        return self._media_listener.url

    @property
    def api_requests(self) -> RequestLog:
        """What the job API was asked."""
        return self._api_listener.requests

    @property
    def media_requests(self) -> RequestLog:
        """What the artifact hosting was asked."""
        return self._media_listener.requests

    @property
    def models(self) -> dict[str, str]:
        """The catalog: kind by model; add to it at will."""
        return self._api.models

    @property
    def webhook_url(self) -> str | None:
        """Where deliveries go, unless a job was submitted with a URL of its own."""
        return self._deliveries.webhook_url

    @webhook_url.setter
    def webhook_url(self, url: str | None) -> None:
        self._deliveries.webhook_url = url

    def start(self) -> Self:
        """Listen."""
        self._deliveries.stopping.clear()
        self._api_listener.start()
        self._media_listener.start()
        return self

    def stop(self) -> None:
        """Be away: connections are refused, open ones end, retries of deliveries cease."""
        self._deliveries.stopping.set()
        self._api_listener.stop()
        self._media_listener.stop()

    def host(self, path: str, body: bytes | Content, **fields: Any) -> File:
        """Host a file; `fields` are those of `File` and say how it misbehaves. `file.url()` signs a URL."""
        path = f"/{path.removeprefix('/')}"
        content = body if isinstance(body, Content) else Content(body)
        fields.setdefault("filename", path.rpartition("/")[2])
        file = self._files[path] = File(path, content, self.media_url, **fields)
        return file

    def add_job(
        self, job_id: str, *, artifacts: Sequence[bytes | File | str] = (), outcome: str = "completed", **fields: Any
    ) -> Job:
        """Add a job that is at `outcome` already; bytes are hosted as pictures, `fields` are those of `Job`."""
        files = [
            self.host(f"{job_id}/picture-{index}.png", item) if isinstance(item, bytes) else item
            for index, item in enumerate(artifacts)
        ]
        job = self._api.jobs[job_id] = Job(job_id, self.api_url, outcome, files, **fields)
        return job

    def job(self, job_id: str) -> Job:
        """Return a job, whether added or submitted."""
        return self._api.jobs[job_id]

    def finish(self, job_id: str, *, outcome: str = "completed") -> None:
        """End a job that was queued or processing."""
        self.job(job_id).outcome = outcome

    def override(self, job_id: str, answer: Answer, *, question: str | None = None, times: int | None = None) -> None:
        """Answer this to `question` ("status" or "result"; None: both) about a job, `times` times (None: always).

        The job need not exist. Overrides are used up in the order they were given.
        """
        self._api.override(job_id, answer, question=question, times=times)

    def deliver(self, job_id: str, *, times: int = 1, at_once: bool = False) -> list[int]:
        """Deliver a job's event `times` times with Sume's retries; return the last status code of each delivery.

        `at_once` has all of them in flight together. 0 stands for no answer.
        """
        return self._deliveries.deliver(self.job(job_id), times=times, at_once=at_once)

    def redeliver(self, job_id: str) -> int:
        """Press Redeliver: the same bytes again under a fresh signature."""
        return self.deliver(job_id)[0]

    def attempts(self, job_id: str) -> list[int]:
        """Return the status code of every attempt at delivering a job so far."""
        return list(self._deliveries.codes.get(job_id, []))

    def send_test(self) -> int:
        """Send `webhook.test` once; return the status code."""
        return self._deliveries.send_test(None)

    def post(
        self,
        body: bytes,
        *,
        secret: bytes | None = None,
        timestamp: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Send any body once, signed now with our secret unless told otherwise; return the status code."""
        return self._deliveries.post(body, secret=secret, timestamp=timestamp, headers=headers)

    def _serve_file(self, exchange: Exchange) -> None:
        file = self._files.get(exchange.request.path)
        if file is None:
            exchange.send(Answer.error(HTTPStatus.NOT_FOUND, "file_not_found"))
        else:
            file.serve(exchange)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
