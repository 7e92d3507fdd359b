"""Log files, followed and made short."""

import json
from pathlib import Path

from rich.text import Text

from shared.cli.dev_screen import styled
from shared.config import child_environment
from shared.sandbox.log_lines import LogFollower, LogLine, short
from shared.sandbox.process import Process


def test_only_whole_lines_and_each_once(tmp_path: Path) -> None:
    """A line is shown when its end has been written, and once."""
    process = Process(["true"], name="api", folder=tmp_path, env=child_environment())
    follower = LogFollower(process)
    assert list(follower.lines()) == []
    with process.log_path.open("a", encoding="utf-8") as log:
        log.write("first\nsec")
        log.flush()
        assert [line.text for line in follower.lines()] == ["first"]
        log.write("ond\n")
        log.flush()
        assert [line.text for line in follower.lines()] == ["second"]
        assert list(follower.lines()) == []


def test_a_structured_line_is_short() -> None:
    """Time of day, process, event and fields; a traceback follows."""
    fields = {
        "timestamp": "2026-11-30T14:35:49.170121Z",
        "level": "error",
        "event": "job.done",
        "process": "worker",
        "attempt": 2,
        "exception": "Traceback\nValueError",
    }
    first, *more = short("worker-1", json.dumps(fields))
    assert first == LogLine("worker-1", "error", "14:35:49 worker-1   job.done  attempt=2")
    assert [line.text.strip() for line in more] == ["Traceback", "ValueError"]


def test_any_other_line_stays() -> None:
    """What is not JSON, or no object, is shown as it is, but steers no terminal."""
    assert list(short("api", "Fatal\x1b[2J")) == [LogLine("api", "", "Fatal\x1b[2J")]
    assert list(short("api", "[1]")) == [LogLine("api", "", "[1]")]
    assert styled(LogLine("api", "", "Fatal\x1b[2J")) == Text("Fatal\N{REPLACEMENT CHARACTER}[2J")
