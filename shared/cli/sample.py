"""A delivery body like Sume's, for trying things out."""

import json
import secrets
from collections.abc import Sequence
from typing import Any

from shared.event import EVENT_NAMES
from shared.sume.payload import TEST_EVENT, status_of


def fresh_job_id() -> str:
    """Return a job_id that no job has."""
    return f"job_sample_{secrets.token_hex(6)}"


def sample_body(event: str, *, job_id: str, artifact_urls: Sequence[str]) -> bytes:
    """Return the body of a delivery; without artifact URLs it has no list, so the worker asks Sume's API for one."""
    document: dict[str, Any] = {"event": event}
    if event != TEST_EVENT:
        document["job_id"] = job_id
    for name in EVENT_NAMES:
        if name == event:
            document["status"] = status_of(name)
    if document.get("status") == "ERROR":
        document["error"] = {"code": "sample", "message": "sent by sume-jobs send"}
    if artifact_urls:
        document["result"] = {"artifacts": [{"url": url} for url in artifact_urls]}
    return json.dumps(document).encode()
