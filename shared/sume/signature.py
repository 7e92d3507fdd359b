"""Sume's webhook signature (source: Sume's published webhook page).

`X-Sume-Signature: v1=<hex>` with hex = HMAC-SHA256(secret, timestamp + "." + raw body).
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence

TIMESTAMP = re.compile(rb"[0-9]+")
SIGNATURE = re.compile(rb"v1=([0-9a-fA-F]{64})")


def sign(secret: bytes, *, timestamp: str, body: bytes) -> str:
    """Return the value of the signature header for a body sent at `timestamp` (Unix seconds)."""
    return "v1=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def parse_timestamp(value: bytes) -> int | None:
    """Return the header's Unix seconds, or None for anything but ASCII digits."""
    if not TIMESTAMP.fullmatch(value):
        return None
    return int(value.lstrip(b"0")[:20] or b"0")  # 20 digits are beyond any window; int() refuses thousands of them


def parse_signatures(value: bytes) -> list[bytes]:
    """Return the lower-case hex of every well-formed `v1=` of a header; other versions are ignored."""
    matches = (SIGNATURE.fullmatch(part.strip(b" \t")) for part in value.split(b","))
    return [match[1].lower() for match in matches if match]


def tag_of(secret: bytes) -> str:
    """Return a name for a secret by which its use can be remembered, wherever it stands in the list.

    Of 16 bits only, so that whoever reads it cannot check a guess: one secret in 65,536 has the same.
    """
    return hmac.new(secret, b"sume-jobs: which secret signed", hashlib.sha256).hexdigest()[:4]


def matches(secrets: Sequence[bytes], *, timestamp: bytes, body: bytes, signatures: Iterable[bytes]) -> frozenset[int]:
    """Return which of the secrets made any of the signatures; every pair is compared, each in constant time."""
    message = timestamp + b"." + body
    wanted = [hmac.digest(secret, message, "sha256").hex().encode() for secret in secrets]
    found: set[int] = set()
    for signature in signatures:
        found.update(n for n, expected in enumerate(wanted) if hmac.compare_digest(expected, signature))
    return frozenset(found)
