"""Where a job's files lie, relative to the storage root.

    <folder of the job>/<nn>-<name>     published files, then manifest.json
    .partial/<folder>/<token>/<name>    work in progress of one lease
    .damaged/<folder>/<nn>-<name>.<sha> what was found changed under a final name
    .sume-storage-id                    tells this storage from others

No job_id starts with a dot, so no job can meet the last three.
"""

import hashlib
from urllib.parse import quote

PARTIAL = ".partial"
DAMAGED = ".damaged"
ID_FILE = ".sume-storage-id"
MANIFEST = "manifest.json"
LONGEST_FOLDER = 255
"""Bytes a file system allows a name; percent-encoding may triple the 128 of a job_id."""


def job_folder(job_id: str) -> str:
    """Return the folder of a job: its job_id, percent-encoded where other systems could not hold it (`:`).

    An encoded job_id too long for a name is cut and completed by its SHA-256; `%~` occurs in no other folder.
    """
    encoded = quote(job_id, safe="")
    if len(encoded) <= LONGEST_FOLDER:
        return encoded
    return f"{encoded[:150]}%~{hashlib.sha256(job_id.encode()).hexdigest()[:32]}"


def artifact_path(job_id: str, *, index: int, name: str) -> str:
    """Return the path of a job's file, for example `job_demo/00-picture.png`; equal names differ by index."""
    return f"{job_folder(job_id)}/{index:02}-{name}"


def manifest_path(job_id: str) -> str:
    """Return the path of a job's manifest, which is written last."""
    return f"{job_folder(job_id)}/{MANIFEST}"
