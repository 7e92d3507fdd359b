"""Where a body lists its artifacts, read without trusting any entry."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shared.event import Artifact
from shared.sume.payload import parse_payload

PLACES = (
    (),
    ("result",),
    ("payload",),
    ("payload", "result"),
    ("data",),
    ("data", "result"),
)
"""The objects that may hold `artifacts`, in the order of CONTRACT section 6."""
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
MALFORMED_SHA256 = "malformed"
"""Stands for a stated SHA-256 that is none: no file can match it, so the check is never silently dropped."""
MAX_LABEL = 255
MAX_SIZE_DIGITS = 19


def artifacts(payload: str) -> list[Artifact] | None:
    """Return the artifacts a stored payload lists, or None where it has no list; see `find_artifacts`.

    Raises PermanentError with reason invalid_payload when it is not a JSON object.
    """
    return find_artifacts(parse_payload(payload))


def find_artifacts(document: Mapping[str, Any]) -> list[Artifact] | None:
    """Return the first list that holds anything, else an empty one, else None.

    Nothing in it is verified. An entry without a usable URL has url "": the worker buries its job.
    """
    found = None
    for place in PLACES:
        entries = look(document, place)
        if isinstance(entries, list):
            found = found or entries
    return None if found is None else [read_artifact(index, entry) for index, entry in enumerate(found)]


def look(document: object, place: Sequence[str]) -> object:
    """Return what `artifacts` holds in the object at a place, None where there is no such object."""
    for key in (*place, "artifacts"):
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def read_artifact(index: int, entry: object) -> Artifact:
    """Read one entry; an optional key of the wrong type counts as not stated, except a SHA-256."""
    fields: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
    return Artifact(
        index=index,
        url=encodable(fields.get("url")) or "",
        type=label(fields.get("type")),
        content_type=label(fields.get("content_type")),
        filename=encodable(fields.get("filename")),
        size_bytes=read_size(fields.get("size_bytes")),
        sha256=read_sha256(fields.get("sha256")),
    )


def encodable(value: object) -> str | None:
    """Return a text that can be sent and stored, exactly as given; None for one with lone surrogates."""
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        return None
    return value


def label(value: object) -> str | None:
    """Return a short printable text, such as a media type."""
    return value if isinstance(value, str) and 0 < len(value) <= MAX_LABEL and value.isprintable() else None


def read_size(value: object) -> int | None:
    """Return a stated size in bytes; digits in a string count, as some encoders write large integers so."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MAX_SIZE_DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value % 1:
        return None
    return int(value)


def read_sha256(value: object) -> str | None:
    """Return a stated SHA-256 in lower case, MALFORMED_SHA256 for what is none, None where null or empty."""
    if value is None or value == "":
        return None
    return value.lower() if isinstance(value, str) and SHA256.fullmatch(value) else MALFORMED_SHA256
