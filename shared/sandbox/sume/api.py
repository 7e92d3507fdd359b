"""The job API of the simulated Sume, as the official client asks it."""

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote

from shared.sandbox.sume.answers import Answer
from shared.sandbox.sume.jobs import Job
from shared.sandbox.sume.listener import Exchange
from shared.sandbox.sume.requests import Request
from shared.sandbox.wheels import SandboxError

MODELS = {"sandbox-image": "image", "sandbox-video": "video"}
ROUTERS = {"/v1/image-router/generate": {"image"}, "/v1/video-router/generate": {"video", "lipsync", "captions"}}


@dataclass(slots=True)
class Override:
    """An answer in place of the truth, for so many requests (None: for all)."""

    answer: Answer
    question: str | None
    times: int | None


class JobApi:
    """Every endpoint under /v1, behind the bearer key."""

    def __init__(
        self,
        *,
        api_key: str,
        origin: Callable[[], str],
        send_test: Callable[[str | None], int],
        invent: Callable[[str], Job] | None = None,
    ) -> None:
        """`invent` makes a job up when one that does not exist is asked about."""
        self.jobs: dict[str, Job] = {}
        self._invent = invent
        self.models = dict(MODELS)
        self._api_key = api_key
        self._origin = origin
        self._send_test = send_test
        self._overrides: dict[str, list[Override]] = {}
        self._submitted: dict[str, str] = {}
        self._lock = threading.Lock()

    def override(self, job_id: str, answer: Answer, *, question: str | None, times: int | None) -> None:
        """Answer differently about one job; overrides are used up in the order they were given."""
        with self._lock:
            self._overrides.setdefault(job_id, []).append(Override(answer, question, times))

    def serve(self, exchange: Exchange) -> None:
        """Answer one request."""
        if exchange.request.headers.get("authorization") == f"Bearer {self._api_key}":
            exchange.send(self._answer(exchange.request))
        else:
            exchange.send(Answer.error(HTTPStatus.UNAUTHORIZED, "invalid_api_key"))

    def _answer(self, request: Request) -> Answer:
        match (request.method, *request.path.removeprefix("/").split("/")):
            case ("GET", "v1", "jobs", quoted, "status" | "result" as question):
                return self._look_up(unquote(quoted), question)
            case ("POST", "v1", "jobs", quoted, "cancel"):
                return self._cancel(unquote(quoted))
            case ("GET", "v1", "open", "catalog", quoted):
                return self._catalog(unquote(quoted))
            case ("POST", "v1", "webhooks", "test-deliveries"):
                return self._test_delivery(read_object(request).get("webhook_url"))
            case ("POST", *_) if request.path in ROUTERS:
                return self._submit(request)
            case _:
                return Answer.error(HTTPStatus.NOT_FOUND, "not_found")

    def _look_up(self, job_id: str, question: str) -> Answer:
        overridden = self._overridden(job_id, question)
        job = self.jobs.get(job_id)
        if overridden is not None:
            return overridden
        if job is None and self._invent is not None:
            job = self._invent(job_id)
        if job is None:
            return Answer.error(HTTPStatus.NOT_FOUND, "job_not_found")
        if question == "status":
            return Answer.data(job.status_data())
        if job.outcome != "completed":
            return Answer.error(HTTPStatus.CONFLICT, "job_not_completed")
        return Answer.data(job.result_data())

    def _overridden(self, job_id: str, question: str) -> Answer | None:
        with self._lock:
            for override in self._overrides.get(job_id, []):
                if override.question in {None, question} and override.times != 0:
                    override.times = None if override.times is None else override.times - 1
                    return override.answer
        return None

    def _cancel(self, job_id: str) -> Answer:
        job = self.jobs.get(job_id)
        if job is None:
            return Answer.error(HTTPStatus.NOT_FOUND, "job_not_found")
        if job.ended:
            return Answer.error(HTTPStatus.CONFLICT, "job_already_ended")
        job.outcome = "canceled"
        return Answer.data(job.status_data())

    def _catalog(self, model: str) -> Answer:
        if model not in self.models:
            return Answer.error(HTTPStatus.NOT_FOUND, "model_not_found")
        return Answer.data({"id": model, "kind": self.models[model]})

    def _test_delivery(self, webhook_url: str | None) -> Answer:
        try:
            return Answer.data({"status_code": self._send_test(webhook_url)})
        except SandboxError:
            return Answer.error(HTTPStatus.UNPROCESSABLE_ENTITY, "webhook_url_missing")

    def _submit(self, request: Request) -> Answer:
        """Queue a job; one with an Idempotency-Key that was seen is the job it was then."""
        body = read_object(request)
        if self.models.get(str(body.get("model"))) not in ROUTERS[request.path]:
            return Answer.error(HTTPStatus.UNPROCESSABLE_ENTITY, "model_not_found")
        webhook_url = body.get("webhook_url")
        with self._lock:
            fresh = f"job_{secrets.token_hex(8)}"
            job_id = self._submitted.setdefault(request.headers.get("idempotency-key", fresh), fresh)
            if job_id == fresh:
                self.jobs[job_id] = Job(job_id, self._origin(), "queued", webhook_url=webhook_url)
        return Answer.data({"request_id": job_id})


def read_object(request: Request) -> Mapping[str, str | None]:
    """Return a request's JSON object; an empty one where there is none."""
    try:
        body = json.loads(request.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
