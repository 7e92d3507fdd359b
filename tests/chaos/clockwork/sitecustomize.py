"""The wall clock of one process, moved by what the harness writes into the file that CHAOS_CLOCK names."""

import datetime as dt
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Any, TypeAlias

RealDatetime: TypeAlias = dt.datetime
OFFSET = struct.Struct("d")
FILE = os.environ.get("CHAOS_CLOCK")  # noqa: TID251 - runs before anything of ours is imported


def move_clock(path: Path) -> None:
    """Replace what Python code reads the wall clock with; the monotonic clock stays, as on a real machine."""
    with path.open("rb") as file:
        shared = mmap.mmap(file.fileno(), OFFSET.size, access=mmap.ACCESS_READ)
    real_time = time.time  # noqa: TID251 - the real one is what is moved

    def moved_time() -> float:
        offset: float = OFFSET.unpack_from(shared)[0]
        return real_time() + offset

    class Kind(type(RealDatetime)):  # type: ignore[misc]  # the class of a class
        """Lets plain datetimes pass for the moved class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, RealDatetime)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, RealDatetime)

    class Moved(RealDatetime, metaclass=Kind):
        """Datetimes whose `now` is moved; what it returns are plain ones."""

        __slots__ = ()  # or compiled code finds the class larger than it was built for

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return RealDatetime.fromtimestamp(moved_time(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return RealDatetime.fromtimestamp(moved_time(), dt.UTC).replace(tzinfo=None)

        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return RealDatetime(*arguments, **named)

    time.time = moved_time  # noqa: TID251 - the same
    time.time_ns = lambda: int(moved_time() * 1e9)
    setattr(dt, "datetime", Moved)  # noqa: B010 - assigning to a class is what a type checker forbids


if FILE:
    move_clock(Path(FILE))
