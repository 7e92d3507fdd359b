"""A simulated Sume on loopback: its job API, its signed deliveries with their retries, its artifact hosting.

    with Sume(secret="s", webhook_url="http://127.0.0.1:8000/webhooks/sume") as sume:
        picture = sume.host("picture.png", PNG, cut_after=1000, cut_times=1)
        sume.add_job("job_demo", artifacts=[picture, b"bytes of a second one"])
        assert sume.deliver("job_demo", times=3, at_once=True) == [204, 204, 204]

The official client works against `sume.api_url` with `sume.api_key`. Whatever was asked stands in `sume.api_requests`
and `sume.media_requests`. What the job API answers is changed by `sume.override` and the fields of a `Job`, how a
file is served by the fields of its `File`.
"""

from shared.sandbox.sume.answers import Answer
from shared.sandbox.sume.content import Content
from shared.sandbox.sume.jobs import Job
from shared.sandbox.sume.media import File
from shared.sandbox.sume.requests import Request, RequestLog
from shared.sandbox.sume.simulator import Sume

__all__ = ["Answer", "Content", "File", "Job", "Request", "RequestLog", "Sume"]
