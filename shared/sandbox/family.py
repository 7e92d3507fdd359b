"""Signals to a process with all its descendants, whatever process groups they moved to.

Postgres gives each backend a session of its own and RQ each work horse a group of its own, so a signal to
the group of the one we started would reach that one alone.
"""

import os
import signal
from contextlib import suppress

from shared.sandbox.wheels import SandboxMissingError


def descendants(pid: int) -> set[int]:
    """Return the ids of all living children, grandchildren and so on."""
    try:
        import psutil  # type: ignore[import-untyped] # noqa: PLC0415 - in the sandbox extra, without types
    except ImportError:
        raise SandboxMissingError("psutil") from None
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def send(pids: set[int], number: signal.Signals) -> None:
    """Signal every process of these that still is there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def freeze(pid: int) -> set[int]:
    """Stop a process and all its descendants, and return them; a stopped one starts no more."""
    frozen: set[int] = set()
    found = {pid}
    while found:
        send(found, signal.SIGSTOP)
        frozen |= found
        found = descendants(pid) - frozen
    return frozen


def thaw(pid: int) -> None:
    """Let a frozen family go on, children first."""
    send(descendants(pid), signal.SIGCONT)
    send({pid}, signal.SIGCONT)


def kill(pid: int) -> None:
    """Kill the whole family at one moment, as a power cut would."""
    send(freeze(pid), signal.SIGKILL)
