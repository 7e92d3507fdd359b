"""The manifest of a job's files, which is written last."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from shared.claims.records import Lease
from shared.event import StoredArtifact
from shared.storage.paths import manifest_path
from shared.storage.storage import Check, Storage


def manifest_of(lease: Lease, artifacts: Sequence[StoredArtifact]) -> bytes:
    """Return the content of `manifest.json` (CONTRACT section 6); the same files give the same bytes."""
    content = {
        "job_id": lease.job_id,
        "event": lease.event,
        "status": lease.status,
        "artifacts": [asdict(artifact) for artifact in artifacts],
    }
    return json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n"


def write_manifest(storage: Storage, *, lease: Lease, artifacts: Sequence[StoredArtifact], check: Check) -> None:
    """Write `manifest.json`, or replace one that says something else, atomically."""
    path, content = manifest_path(lease.job_id), manifest_of(lease, artifacts)
    if storage.read(path) == content:
        return
    partial = storage.start(lease.job_id, token=lease.token, name="manifest")
    try:
        partial.write(content)
        check()
        storage.replace(partial, path)
    finally:
        partial.discard()
