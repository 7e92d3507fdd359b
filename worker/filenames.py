"""A safe file name for each artifact, the same on every attempt."""

import re
import unicodedata
from urllib.parse import unquote, urlsplit

from shared.event import Artifact
from worker.media_types import suffix_for

MOST_BYTES = 120
LONGEST_SUFFIX = 20
"""Bytes; what follows the last dot of a longer one is no suffix."""
SEPARATORS = re.compile(r"[/\\]")
FORBIDDEN = frozenset('<>:"|?*')
"""What Windows and SMB do not allow in a name."""
RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)
"""Names that are devices on Windows, with any suffix."""
UNWANTED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Control, format (bidi overrides among them), surrogate, private, unassigned, line and paragraph separators."""


def file_name(artifact: Artifact) -> str:
    """Return the name from the announced filename, else the URL, else the type; at most 120 bytes, suffix kept.

    It depends on the announcement alone, so that a rerun finds what an earlier attempt published.
    """
    for candidate in (artifact.filename or "", name_in(artifact.url)):
        if name := safe_name(candidate):
            return name
    return "artifact" + suffix_for(content_type=artifact.content_type, kind=artifact.type)


def name_in(url: str) -> str:
    """Return the last part of a URL's path, percent-decoded; empty for what is no URL."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return unquote(path.rpartition("/")[2])


def safe_name(text: str) -> str:
    """Return the last part of a path as a name that every file system holds, in NFC; empty when nothing is left."""
    name = unicodedata.normalize("NFC", SEPARATORS.split(text)[-1])
    name = "".join(replaced(character) for character in name).lstrip(". ").rstrip(". ")
    if RESERVED.fullmatch(name.partition(".")[0].rstrip()):
        name = f"_{name}"
    return shortened(name)


def replaced(character: str) -> str:
    """Return the character, or what stands for it in a name."""
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    return "_" if category in UNWANTED or character in FORBIDDEN else character


def shortened(name: str) -> str:
    """Cut a name to 120 bytes of UTF-8 between two characters, keeping its suffix."""
    if len(name.encode()) <= MOST_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix.encode()) > LONGEST_SUFFIX:
        stem, suffix = name, ""
    else:
        suffix = f".{suffix}"
    room = MOST_BYTES - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(". ") + suffix
