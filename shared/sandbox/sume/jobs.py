"""The jobs of the simulated Sume and the deliveries' bodies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.sandbox.sume.media import File

EVENTS = {"completed": "job.completed", "failed": "job.failed", "nsfw": "job.failed", "canceled": "job.canceled"}
"""The event that tells of each way to end."""
ERRORS = {
    "failed": {"code": "generation_failed", "message": "The model could not finish.", "public_reason": "model_error"},
    "nsfw": {
        "code": "content_rejected",
        "message": "The request was rejected by the content policy.",
        "public_reason": "content_policy_rejected",
    },
}


@dataclass(slots=True)
class Job:
    """One job. Every field may be changed at any time; `body` is fixed by the first delivery."""

    job_id: str
    origin: str
    outcome: str = "completed"
    """Sume's own word: queued, processing, completed, failed, nsfw, canceled; any other is told as it is."""
    artifacts: Sequence[File | str] = ()
    """Hosted files, and URLs to be listed as they are."""
    listed_at: str | None = "result.artifacts"
    """Where in a delivery's body the list stands (dots for depth); None: nowhere."""
    answers_as: str | None = None
    """The id that the job API's answers name instead of its own."""
    webhook_url: str | None = None
    body: bytes | None = None

    @property
    def ended(self) -> bool:
        """Whether a delivery can tell of it."""
        return self.outcome in EVENTS

    @property
    def error(self) -> dict[str, str] | None:
        """What the job says went wrong."""
        return ERRORS.get(self.outcome)

    def artifact_list(self) -> list[dict[str, Any]]:
        """Return the entries of its files, each URL freshly signed."""
        return [{"url": file} if isinstance(file, str) else file.entry() for file in self.artifacts]

    def status_data(self) -> dict[str, Any]:
        """Return what the job API's status look-up says."""
        named = self.answers_as or self.job_id
        job: dict[str, Any] = {"id": named} | ({"error": self.error} if self.error else {})
        return {"request_id": named, "status": self.outcome.upper(), "sume_status": self.outcome, "job": job}

    def result_data(self) -> dict[str, Any]:
        """Return what the job API's result look-up says of a completed job."""
        result = {"artifacts": self.artifact_list()}
        return {"request_id": self.answers_as or self.job_id, "status": "COMPLETED", "result": result}

    def delivery_body(self) -> bytes:
        """Return the bytes of its delivery, the same at every redelivery, signed URLs included."""
        if self.body is None:
            envelope: dict[str, Any] = {
                "event": EVENTS[self.outcome],
                "job_id": self.job_id,
                "status": "OK" if self.outcome == "completed" else "ERROR",
                "status_url": f"{self.origin}/v1/jobs/{self.job_id}/status",
            }
            if self.error:
                envelope["error"] = self.error
            if self.outcome == "completed" and self.listed_at:
                *folders, last = self.listed_at.split(".")
                inner = envelope
                for folder in folders:
                    inner = inner.setdefault(folder, {})
                inner[last] = self.artifact_list()
            self.body = json.dumps(envelope).encode()
        return self.body
