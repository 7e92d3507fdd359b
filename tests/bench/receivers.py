"""The receivers that are compared, each a process of its own on the same servers."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.process import Process, python_module

START_WITHIN = timedelta(seconds=30)
SECRET = "throwaway-signing-secret"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Receiver:
    """One that runs."""

    process: Process
    port: int


def ours(name: str, *, folder: Path, database_url: str, redis_url: str) -> Receiver:
    """Start our api with its default settings."""
    port = free_port()
    env = child_environment(SUME_COM_WEBHOOK_SIGNING_SECRET=SECRET, DATABASE_URL=database_url, REDIS_URL=redis_url)
    process = Process(python_module("api", "--port", str(port)), name=name, folder=folder, env=env)
    return started(process, port)


def other(module: str, *arguments: str, folder: Path) -> Receiver:
    """Start one of this folder's modules."""
    port = free_port()
    command: Sequence[str] = (sys.executable, "-m", f"tests.bench.{module}", str(port), *arguments)
    process = Process(command, name=module, folder=folder, env=child_environment(PYTHONPATH=str(ROOT)))
    return started(process, port)


def started(process: Process, port: int) -> Receiver:
    """Start a receiver and return once it serves."""
    process.start().wait_for_http(f"http://{LOOPBACK}:{port}/livez", within=START_WITHIN)
    return Receiver(process, port)
