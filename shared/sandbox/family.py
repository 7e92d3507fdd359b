"""Signals to a process with all its descendants, whatever process groups they moved to.

Postgres gives each backend a session of its own and RQ each work horse a group of its own, so a signal to
the group of the one we started would reach that one alone.
"""

import importlib
import os
import signal
import time
from contextlib import suppress
from typing import Any

from shared.sandbox.wheels import SandboxError, SandboxMissingError

STILL_SECONDS = 10
LOOK_SECONDS = 0.002


def load_psutil() -> Any:
    """Return psutil, which comes with the sandbox extra and has no types."""
    try:
        return importlib.import_module("psutil")
    except ImportError:
        raise SandboxMissingError("psutil") from None


def descendants(pid: int) -> set[int]:
    """Return the ids of all living children, grandchildren and so on."""
    psutil = load_psutil()
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
    """Stop a process and all its descendants, and return them once all stand still: a stopped one starts no more."""
    frozen: set[int] = set()
    found = {pid}
    while found:
        send(found, signal.SIGSTOP)
        await_still(found)
        frozen |= found
        found = descendants(pid) - frozen
    return frozen


def is_still(pid: int) -> bool:
    """Whether a process is stopped, has ended, or is gone."""
    psutil = load_psutil()
    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return True


def await_still(pids: set[int]) -> None:
    """Return when each of the processes is stopped or gone: SIGSTOP takes effect a moment after it was sent."""
    deadline = time.monotonic() + STILL_SECONDS
    while not all(is_still(pid) for pid in pids):
        if time.monotonic() > deadline:
            raise SandboxError(f"a process did not stop within {STILL_SECONDS} s")
        time.sleep(LOOK_SECONDS)


def thaw(pid: int) -> None:
    """Let a frozen family go on, children first."""
    send(descendants(pid), signal.SIGCONT)
    send({pid}, signal.SIGCONT)


def kill(pid: int) -> None:
    """Kill the whole family at one moment, as a power cut would."""
    try:
        doomed = freeze(pid)
    except SandboxError:
        doomed = {pid} | descendants(pid)
    send(doomed, signal.SIGKILL)
