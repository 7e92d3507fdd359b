"""Which URLs are of the origin that may get our key: the only ones a job may be asked about at.

Apart from the client, so that the receiver, which asks nobody, does not load one.
"""

import re
from urllib.parse import SplitResult, urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}
URL_TEXT = re.compile(r"[!-~]+")


def same_origin(status_url: str, base_url: str) -> bool:
    """Whether a status_url may be asked with our key: same scheme, host and port, and no user in it."""
    if not URL_TEXT.fullmatch(status_url) or "\\" in status_url:
        return False
    try:
        theirs, ours = urlsplit(status_url), urlsplit(base_url)
        return "@" not in theirs.netloc and ours.scheme in DEFAULT_PORTS and origin(theirs) == origin(ours)
    except ValueError:
        return False


def origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port with its default."""
    port = DEFAULT_PORTS.get(parts.scheme) if parts.port is None else parts.port
    return parts.scheme, parts.hostname, port
