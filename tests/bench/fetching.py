"""A process of its own that stores the artifacts of one job, and prints the seconds it took and its peak memory."""

import json
import sys
import time
from datetime import timedelta
from uuid import uuid4

import worker.child  # noqa: F401 - a worker has it loaded, so it counts as memory
from shared.claims.records import Lease
from shared.config import Settings
from shared.event import Artifact
from shared.storage import open_storage
from shared.storage.storage import never_stop
from tests.worker.download_peak import peak_kib
from tests.worker.hosts import circuits_of
from worker.addresses import HostRules
from worker.artifacts import store_artifacts
from worker.download import Downloader
from worker.publish import Publisher


def main(url: str, root: str, sha256: str, files: str, size: str) -> None:
    """Download one URL as so many artifacts, with the settings' defaults, whole and published when the clock stops."""
    settings = Settings.load(_env_file=None, storage_url=f"file://{root}")
    storage = open_storage(settings)
    downloader = Downloader(
        HostRules.of(("127.0.0.1",), allow_insecure=True),
        stall=settings.seconds("download_stall"),
        max_bytes=settings.artifact_max_bytes,
    )
    lease = lease_of_one_job()
    artifacts = [
        Artifact(index, f"{url}/{index}.mp4", type="video", size_bytes=int(size), sha256=sha256)
        for index in range(int(files))
    ]
    began = time.perf_counter()
    stored = store_artifacts(
        artifacts,
        lease=lease,
        publisher=Publisher(storage, downloader, settings.storage_min_free_bytes),
        circuits=circuits_of(lease),
        concurrency=settings.download_concurrency,
        check=never_stop,
        record=lambda _artifact: None,
    )
    seconds = time.perf_counter() - began
    if len(stored) != int(files):
        raise RuntimeError("not every file was stored")
    print(json.dumps({"seconds": seconds, "peak_kib": peak_kib()}))  # noqa: T201 - read by the benchmark


def lease_of_one_job() -> Lease:
    """Return the lease of a first attempt."""
    return Lease(
        job_id="job_bench", token=uuid4(), event="job.completed", status="OK", payload="{}", status_url=None,
        attempt=1, strikes=0, exhausted=False, previous_reason=None, previous_error=None, claimed_for=timedelta(),
        acknowledged=False, artifacts=(),
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
