"""A picture that can be looked at, made without any library."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
TRUE_COLOUR_8_BIT = (8, 2, 0, 0, 0)


def png(*, width: int = 480, height: int = 270, seed: int = 0) -> bytes:
    """Return a PNG of a gradient; another seed is another picture."""
    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (x * 255 // width, y * 255 // height, seed * 67 % 256))
        for y in range(height)
    )
    header = struct.pack(">2I5B", width, height, *TRUE_COLOUR_8_BIT)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return one part of the file with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
