"""The limit of the worker: `python -m tests.bench.plain_loop DATABASE_URL ROOT < job_ids`.

What a careful person would write without a queue, for one process: a loop over job_ids with plain psycopg and
http.client that leaves the same on disk and in the database as the worker does, as durably: the file under its final
name, the manifest beside it, the row of the artifact, the job done, and two lines of its timeline. It has no leases,
no messages, no threads, no log, no checks of where a URL leads, and nothing in it can be interrupted or resumed.
"""

import hashlib
import http.client
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

CHUNK = 256 * 1024

RUN = """
UPDATE sume_jobs SET state = 'running', lease_token = %s, wake_at = now() + interval '1 minute',
    attempts = attempts + 1, updated_at = now() WHERE job_id = %s RETURNING payload
"""
DONE = """
UPDATE sume_jobs SET state = 'done', lease_token = NULL, wake_at = NULL, updated_at = now() WHERE job_id = %s
"""
NOTE = "INSERT INTO sume_timeline (job_id, state, cause, attempt) VALUES (%s, %s, %s, 1)"
KEEP = """
INSERT INTO sume_artifacts (job_id, index, path, bytes, sha256, content_type, type) VALUES (%s, 0, %s, %s, %s, %s, %s)
"""


def work(connection: psycopg.Connection[tuple[str]], job_id: str, root: Path) -> None:
    """Work on one job of one file."""
    with connection.transaction():
        row = connection.execute(RUN, (uuid4(), job_id)).fetchone()
        connection.execute(NOTE, (job_id, "running", "lease taken"))
    assert row is not None
    event = json.loads(row[0])
    (promised,) = event["result"]["artifacts"]
    folder, name = root / job_id, f"00-{promised['filename']}"
    partial = root / ".partial" / job_id
    size, sha256 = download(promised["url"], partial)
    if (size, sha256) != (promised["size_bytes"], promised["sha256"]):
        raise ValueError(job_id)
    folder.mkdir()
    os.link(partial, folder / name)
    partial.unlink()
    stored = {
        "index": 0,
        "path": f"{job_id}/{name}",
        "bytes": size,
        "sha256": sha256,
        "content_type": promised["content_type"],
        "type": promised["type"],
    }
    manifest = {"job_id": job_id, "event": event["event"], "status": event["status"], "artifacts": [stored]}
    write(json.dumps(manifest, indent=2).encode() + b"\n", partial)
    partial.rename(folder / "manifest.json")
    sync(folder)
    sync(root)
    with connection.transaction():
        connection.execute(KEEP, (job_id, *list(stored.values())[1:]))
        connection.execute(DONE, (job_id,))
        connection.execute(NOTE, (job_id, "done", "finished"))


def download(url: str, path: Path) -> tuple[int, str]:
    """Write a file durably; return its size and SHA-256."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", parts.path)
    response = connection.getresponse()
    if response.status != http.client.OK:
        raise ValueError(response.status)
    digest, size = hashlib.sha256(), 0
    with path.open("xb", buffering=0) as file:
        while chunk := response.read(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        os.fsync(file.fileno())
    connection.close()
    return size, digest.hexdigest()


def write(content: bytes, path: Path) -> None:
    """Write a small file durably."""
    with path.open("xb", buffering=0) as file:
        file.write(content)
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def main(arguments: Sequence[str]) -> int:
    """Work on all of them."""
    database_url, root = arguments[0], Path(arguments[1])
    (root / ".partial").mkdir(parents=True, exist_ok=True)
    with psycopg.connect(database_url, autocommit=True) as connection:
        for line in sys.stdin:
            work(connection, line.strip(), root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
