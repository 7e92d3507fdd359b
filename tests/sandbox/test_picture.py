"""The picture that the sandbox hosts."""

import struct
import zlib

from shared.sandbox.picture import SIGNATURE, png


def test_a_picture_is_a_whole_png() -> None:
    """Its parts have the right lengths and checksums, and its pixels are as many as its header says."""
    data = png(width=8, height=4, seed=3)
    assert data.startswith(SIGNATURE)
    parts, at = {}, len(SIGNATURE)
    while at < len(data):
        [size] = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (zlib.crc32(kind + body),)
        parts[kind], at = body, at + 12 + size
    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack_from(">2I", parts[b"IHDR"]) == (8, 4)
    assert len(zlib.decompress(parts[b"IDAT"])) == 4 * (1 + 3 * 8)
    assert png(seed=1) != png(seed=2)
