"""Deliveries as Sume would send them, signed before the clock starts."""

import json
from collections.abc import Iterable, Sequence

from shared import clock
from shared.sume.signature import sign

SIGNED_URL = "https://media.sume.com/jobs/{job_id}/0.png?expires=1796040000&signature=" + "c0ffee" * 8


def body_of(job_id: str) -> bytes:
    """Return a job.completed of the usual size, about 600 bytes."""
    return json.dumps(
        {
            "event": "job.completed",
            "job_id": job_id,
            "status": "OK",
            "status_url": f"https://api.open.sume.com/v1/jobs/{job_id}",
            "created_at": "2026-11-30T12:00:00Z",
            "completed_at": "2026-11-30T12:01:07Z",
            "result": {
                "artifacts": [
                    {
                        "type": "image",
                        "url": SIGNED_URL.format(job_id=job_id),
                        "content_type": "image/png",
                        "size_bytes": 204_800,
                        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    }
                ]
            },
        }
    ).encode()


def signed_requests(job_ids: Iterable[str], *, secret: bytes) -> Sequence[bytes]:
    """Return a delivery of each job as a whole HTTP request; they are good for WEBHOOK_TOLERANCE_SECONDS."""
    return sign_bodies(map(body_of, job_ids), secret=secret)


def sign_bodies(bodies: Iterable[bytes], *, secret: bytes) -> Sequence[bytes]:
    """Return a whole HTTP request for each body."""
    timestamp = str(int(clock.unix_seconds()))
    requests = []
    for body in bodies:
        head = (
            "POST /webhooks/sume HTTP/1.1\r\n"
            "Host: hooks.example.com\r\n"
            "User-Agent: Sume-Webhooks/1.0\r\n"
            "Accept: */*\r\n"
            "Content-Type: application/json\r\n"
            f"X-Sume-Timestamp: {timestamp}\r\n"
            f"X-Sume-Signature: {sign(secret, timestamp=timestamp, body=body)}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        requests.append(head.encode() + body)
    return requests
