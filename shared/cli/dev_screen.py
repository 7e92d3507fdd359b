"""What `dev` shows: how to use the system, its logs, and what has died."""

import sys

from rich.console import Console
from rich.text import Text

from shared.sandbox.dev import Dev
from shared.sandbox.log_lines import LogFollower, LogLine

STYLES = {"warning": "yellow", "error": "red", "critical": "bold red", "debug": "dim"}
DEAD = "bold white on red"


class Screen:
    """Prints to stdout; long values are never broken, so that they can be copied."""

    def __init__(self, running: Dev) -> None:
        self._running = running
        self._console = Console(highlight=False, emoji=False, markup=False)
        self._followers = [LogFollower(process) for process in running.system.processes.values()]
        self._dead: set[str] = set()

    def introduce(self) -> None:
        """Print every URL and credential, and what to try."""
        self._print()
        for name, value in self._running.places():
            self._print(Text.assemble((f"  {name:<17}", "bold"), value))
        self._print()
        self._print(Text("In another terminal, in this folder:", "bold"))
        for line in self._running.lines_to_try():
            self._print(Text(f"  {line}", "cyan"))
        self._print()
        self._print(Text("Ctrl-C stops everything. Logs follow.", "bold"))

    def show_news(self) -> None:
        """Print what was logged since the last call, and what has died meanwhile."""
        for follower in self._followers:
            for line in follower.lines():
                self._print(styled(line))
        for name, how in self._running.system.ended().items():
            if name not in self._dead:
                self._dead.add(name)
                self._print(Text(f" {name} DIED, {how}; the rest goes on without it, Ctrl-C and start again ", DEAD))

    def _print(self, text: Text | str = "") -> None:
        self._console.print(text, soft_wrap=True)
        sys.stdout.flush()


def styled(line: LogLine) -> Text:
    """Return a log line in the colour of its level, with nothing in it that could steer a terminal."""
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line.text)
    return Text(text, STYLES.get(line.level, ""))
