"""The simulated Sume as a process of its own: its job API and its artifact hosting, killed and frozen like the rest.

`python -m tests.chaos.sume_host SEED JOBS API_PORT MEDIA_PORT API_KEY BODIES`. Started again it knows the same jobs,
but every URL it signed before has expired. The bodies of all deliveries are written to BODIES at the first start.
"""

import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from shared.sandbox.sume import File, Sume
from tests.chaos.jobs import DRIP_BYTES, DRIP_WAIT, PlannedFile, PlannedJob, plan_jobs

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class FixedSume(Sume):
    """A simulated Sume on the ports it is told."""

    def __init__(self, *, api_port: int, media_port: int, api_key: str) -> None:
        super().__init__(secret="unused: the harness delivers", api_key=api_key)
        self._api_listener.port, self._media_listener.port = api_port, media_port


def add(sume: Sume, job: PlannedJob) -> bytes:
    """Let Sume have a job; return the body of its delivery."""
    listed_at = None if job.kind == "unlisted" else "result.artifacts"
    hosted = [host(sume, job, file) for file in job.files]
    return sume.add_job(job.job_id, artifacts=hosted, outcome=job.outcome, listed_at=listed_at).delivery_body()


def host(sume: Sume, job: PlannedJob, file: PlannedFile) -> File:
    """Host one file of a job."""
    film = file.slow
    kind = {"content_type": "video/mp4", "type": "video"} if film else {}
    drip = {"drip_bytes": DRIP_BYTES, "drip_wait": DRIP_WAIT} if film else {}
    return sume.host(f"{job.job_id}/{file.name}", file.content, **kind, **drip)


def write_bodies(path: Path, bodies: Iterable[tuple[str, bytes]]) -> None:
    """Write job_id and body of every delivery, unless an earlier start has."""
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    draft.write_text("".join(json.dumps([job_id, body.decode()]) + "\n" for job_id, body in bodies), encoding="utf-8")
    draft.replace(path)


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM."""
    seed, jobs, api_port, media_port, api_key, bodies = arguments
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    sume = FixedSume(api_port=int(api_port), media_port=int(media_port), api_key=api_key)
    write_bodies(Path(bodies), [(job.job_id, add(sume, job)) for job in plan_jobs(int(seed), int(jobs))])
    with sume:
        signal.sigwait(STOP_SIGNALS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
