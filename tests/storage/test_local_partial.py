"""Tests of a file in progress: it goes to the disk while it comes."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from shared.storage.local import LocalStorage
from shared.storage.local_partial import WRITE_BACK, LocalPartial

PATH = "job_demo/00-film.mp4"
HALF = bytes(range(256)) * (WRITE_BACK // 512)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """An empty storage."""
    return LocalStorage(tmp_path)


@pytest.fixture
def partial(storage: LocalStorage) -> Iterator[LocalPartial]:
    """A file in progress."""
    partial = storage.start("job_demo", token=uuid4(), name="00")
    yield partial
    partial.discard()


@pytest.fixture
def advised(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The parts that the disk was told to begin with, as start and length."""
    parts: list[tuple[int, int]] = []

    def advise(_file: int, start: int, length: int, _advice: int) -> None:
        parts.append((start, length))

    monkeypatch.setattr(os, "posix_fadvise", advise, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    return parts


def test_a_large_file_goes_to_the_disk_while_it_comes(partial: LocalPartial, advised: list[tuple[int, int]]) -> None:
    """Each part is begun once, when there is enough of it."""
    for _ in range(5):
        partial.write(HALF)
    assert advised == [(0, WRITE_BACK), (WRITE_BACK, WRITE_BACK)]


def test_a_small_file_is_left_to_its_sync(partial: LocalPartial, advised: list[tuple[int, int]]) -> None:
    """It costs no further call."""
    partial.write(HALF)
    assert advised == []


def test_a_restarted_file_is_begun_anew(partial: LocalPartial, advised: list[tuple[int, int]]) -> None:
    """What was begun with is forgotten with the rest."""
    for _ in range(3):
        partial.write(HALF)
    partial.restart()
    partial.write(HALF)
    partial.write(HALF)
    assert advised == [(0, WRITE_BACK), (0, WRITE_BACK)]


def test_a_file_system_without_advice_is_none_the_worse(
    storage: LocalStorage, partial: LocalPartial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is whole, and synced at its end."""

    def refuse(_file: int, _start: int, _length: int, _advice: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    partial.write(HALF)
    partial.write(HALF)
    assert storage.publish(partial, PATH)
    assert storage.read(PATH) == HALF + HALF
