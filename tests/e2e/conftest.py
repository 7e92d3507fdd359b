"""One whole system for each module, with intervals short enough for a test."""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from shared.claims.records import JobRecord
from shared.sandbox.sume import File
from shared.sandbox.system import System

SETTINGS = {
    "LEASE_SECONDS": "3",
    "SWEEP_INTERVAL_SECONDS": "0.5",
    "CLAIM_STALE_SECONDS": "3",
    "RETRY_BASE_SECONDS": "0.2",
    "RETRY_MAX_SECONDS": "1",
    "POLL_INTERVAL_SECONDS": "0.5",
    "POLL_MAX_SECONDS": "1",
    "MAX_ATTEMPTS": "2",
}
SOON = timedelta(seconds=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("system")


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A system that a module's tests share; each leaves it running."""
    with System(folder, settings=SETTINGS) as system:
        yield system


def wait_until(system: System, job_id: str, state: str, *, reason: str | None = None) -> JobRecord:
    """Return the job once it is in a state (and waits for a reason), within half a minute."""
    found: list[JobRecord] = []

    def there() -> bool:
        job = system.store.get_job(job_id)
        if job is not None and job.state == state and (reason is None or job.reason == reason):
            found.append(job)
        return bool(found)

    system.until(there, what=f"{job_id} {state} {reason or ''}", within=SOON)
    return found[0]


def assert_stored(system: System, job: JobRecord, files: list[File]) -> None:
    """Hold every file to the bytes that Sume hosts, and the folder to holding nothing else."""
    root = system.settings.storage_path
    assert [stored.sha256 for stored in job.artifacts] == [file.content.sha256 for file in files]
    for stored in job.artifacts:
        assert hashlib.sha256((root / stored.path).read_bytes()).hexdigest() == stored.sha256
    names = {Path(stored.path).name for stored in job.artifacts} | {"manifest.json"}
    assert {path.name for path in (root / job.job_id).iterdir()} == names
