"""The media types we know by name, fixed here because the system's own list differs between machines."""

MEDIA_KINDS = frozenset({"image", "video", "audio"})

SUFFIXES = {
    "application/gzip": ".gz",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "audio/aac": ".aac",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/webm": ".weba",
    "audio/x-wav": ".wav",
    "image/avif": ".avif",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/tiff": ".tiff",
    "image/webp": ".webp",
    "model/gltf+json": ".gltf",
    "model/gltf-binary": ".glb",
    "text/plain": ".txt",
    "text/vtt": ".vtt",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
}
USUAL_SUFFIXES = {"image": ".png", "video": ".mp4", "audio": ".mp3"}
"""For an artifact that says what kind it is and nothing more."""
KINDS = {suffix: content_type.partition("/")[0] for content_type, suffix in SUFFIXES.items()} | {".jpeg": "image"}


def suffix_for(*, content_type: str | None, kind: str | None) -> str:
    """Return the suffix of a file that has no name; empty where nothing is known."""
    known = SUFFIXES.get((content_type or "").partition(";")[0].strip().lower())
    return known or USUAL_SUFFIXES.get((kind or content_type or "").strip().lower().partition("/")[0], "")


def kind_of_suffix(suffix: str) -> str | None:
    """Return image, video, audio or another kind for a suffix we know."""
    return KINDS.get(suffix.lower())
