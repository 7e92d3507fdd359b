"""How soon a new api is ready, and how much memory one holds that has nothing to do.

A start is cold in that the process is new; its files are in the page cache, as they are when it is restarted.
"""

import http.client
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types

from shared.claims.schema import migrate
from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.postgres import Postgres
from shared.sandbox.process import Process, python_module
from shared.sandbox.valkey import Valkey
from tests.bench.bench import Bench
from tests.bench.rounds import repeat
from tests.bench.row import Row, Target

READY, IDLE = "seconds to ready", "MB when idle"
LOOK_SECONDS = 0.001
LONGEST_START = timedelta(seconds=30)
MB = 1_000_000


def measure(bench: Bench) -> Iterator[Row]:
    """Start it again and again beside servers that run; RuntimeError where it does not become ready."""
    with Postgres() as postgres, Valkey() as valkey:
        migrate(postgres.url)
        env = child_environment(
            DATABASE_URL=postgres.url,
            REDIS_URL=valkey.url,
            SUME_COM_WEBHOOK_SIGNING_SECRET="throwaway-signing-secret",
            OPS_TOKEN="throwaway-token",
        )
        found = repeat(partial(start, bench.folder, env), times=bench.pairs, say=bench.say)
    yield found.row("api: cold start to ready", READY, target=Target(at_most=1.5), unit="s")
    yield found.row("api: idle RSS", IDLE, target=Target(at_most=90), unit="MB")


def start(folder: Path, env: Mapping[str, str]) -> Mapping[str, float]:
    """Start one api, and stop it; its memory is read once it has asked both servers, and so is connected to both."""
    port = free_port()
    process = Process(python_module("api", "--port", str(port)), name="api", folder=folder, env=env)
    begun = time.perf_counter()
    with process:
        await_ready(process, port)
        ready = time.perf_counter() - begun
        idle = psutil.Process(process.pid).memory_info().rss / MB
        if process.terminate() != 0:
            raise RuntimeError("the api did not end in good order")
    return {READY: ready, IDLE: idle}


def await_ready(process: Process, port: int) -> None:
    """Return at the first 200 of /readyz: the answer to a claim that could be stored."""
    deadline = time.monotonic() + LONGEST_START.total_seconds()
    while not is_ready(port):
        if not process.running or time.monotonic() > deadline:
            raise RuntimeError("the api did not become ready")
        time.sleep(LOOK_SECONDS)


def is_ready(port: int) -> bool:
    """Whether it is; a port that listens already answers once the api serves."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=LONGEST_START.total_seconds())
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
