"""The log files of our processes, followed and made short for people."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.sandbox.process import Process

LEFT_OUT = {"timestamp", "process", "level", "event", "logger", "exception"}
TIME_OF_DAY = slice(11, 19)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a process; `level` is empty for what is not a log line of ours."""

    process: str
    level: str
    text: str


class LogFollower:
    """Follows what one process writes, from where it has written to now."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._read = 0

    def lines(self) -> Iterator[LogLine]:
        """Yield the whole lines written since the last call."""
        try:
            with self._process.log_path.open("rb") as log:
                log.seek(self._read)
                whole, newline, _ = log.read().rpartition(b"\n")
        except FileNotFoundError:
            return
        self._read += len(whole) + len(newline)
        for line in whole.decode(errors="replace").splitlines():
            yield from short(self._process.name, line)


def short(process: str, line: str) -> Iterator[LogLine]:
    """Yield a structured line as time, event and fields, its traceback line by line; any other as it is."""
    try:
        fields: Any = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        yield LogLine(process, "", line)
        return
    level = str(fields.get("level", ""))
    told = " ".join(f"{name}={value}" for name, value in fields.items() if name not in LEFT_OUT)
    time = str(fields.get("timestamp", ""))[TIME_OF_DAY]
    yield LogLine(process, level, f"{time} {process:<10} {fields.get('event', '')}  {told}".rstrip())
    for more in str(fields.get("exception", "")).splitlines():
        yield LogLine(process, level, f"         {more}")
