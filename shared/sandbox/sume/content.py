"""The bytes of hosted files, the very large ones never held in memory."""

import hashlib
import random
from collections.abc import Iterator
from functools import cached_property
from typing import Self

CHUNK = 256 * 1024
BLOCK = 1_048_573
"""A prime, so that a resume at any wrong offset that is a round number gives other bytes."""


class Content:
    """A block of bytes, repeated up to a size."""

    def __init__(self, block: bytes, *, size: int | None = None) -> None:
        self.size = len(block) if size is None else size
        self._block = block

    @classmethod
    def generated(cls, size: int, *, seed: int = 0) -> Self:
        """Return noise of any size that costs a megabyte of memory, the same for the same seed."""
        return cls(random.Random(seed).randbytes(min(size, BLOCK)), size=size)  # noqa: S311 - filling, no secret

    @cached_property
    def sha256(self) -> str:
        """The hex SHA-256 of all of it."""
        digest = hashlib.sha256()
        for chunk in self.chunks(0, self.size):
            digest.update(chunk)
        return digest.hexdigest()

    def chunks(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from `start` up to `end` in pieces of at most CHUNK."""
        while start < end:
            offset = start % len(self._block)
            piece = self._block[offset : min(offset + CHUNK, offset + end - start)]
            yield piece
            start += len(piece)
