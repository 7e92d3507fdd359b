"""The command `python -m api`."""

import argparse
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import NoReturn

from api.garbage import collect_seldom
from api.processes import Processes
from shared import logs
from shared.config import Settings
from shared.errors import SettingsError

BACKLOG = 2048


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the webhook until SIGTERM; returns the exit status."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, stop_before_serving)
    try:
        settings = Settings.load("DATABASE_URL", "REDIS_URL")
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logs.configure(settings, process="api")
    addresses = [(options.host, options.port), *([settings.ops_address] if settings.ops_address else [])]
    with ExitStack() as opened:
        listeners = []
        for host, number in addresses:
            try:
                listeners.append(opened.enter_context(listen(host, number)))
            except OSError as error:
                sys.stderr.write(f"cannot listen on {host}:{number}: {reason_of(error)}\n")
                return 1
        if options.processes == 1:
            return serve(settings, listeners=listeners)
        with tempfile.TemporaryDirectory(prefix="sume-jobs-metrics-") as folder:
            # prometheus_client looks for its folder only here, when it is first imported, in each child.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # noqa: TID251 - the only way it can be told
            parent = os.getpid()
            return Processes(
                lambda: serve(settings, listeners=listeners, parent=parent, metrics_folder=folder),
                count=options.processes,
                stop_listening=opened.close,
            ).run()


def serve(
    settings: Settings, *, listeners: list[socket.socket], parent: int | None = None, metrics_folder: str | None = None
) -> int:
    """Import the receiver only in the process that serves: connections and metrics are not to cross a fork."""
    collect_seldom()
    from api import server  # noqa: PLC0415

    return server.serve(settings, listeners=listeners, parent=parent, metrics_folder=metrics_folder)


def stop_before_serving(_number: int, _frame: FrameType | None) -> NoReturn:
    """End in order when told to stop while still starting; the server has its own way from then on.

    Not by an exception: one that strikes in an import, pydantic's compiled code turns into an error of its own.
    """
    os._exit(0)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; exits with 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m api", description="Receive Sume's webhooks.", epilog="example: python -m api --port 8000"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=port, default=8000, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument("--processes", type=process_count, default=1, help="receivers (default: %(default)s)")
    return parser.parse_args(arguments)


def port(value: str) -> int:
    """Read a TCP port."""
    return bounded(value, 0, 65_535)


def process_count(value: str) -> int:
    """Read how many processes to run."""
    return bounded(value, 1, 64)


def bounded(value: str, least: int, most: int) -> int:
    """Read a whole number within bounds."""
    if not value.isascii() or not value.isdigit() or not least <= int(value) <= most:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")
    return int(value)


def listen(host: str, number: int) -> socket.socket:
    """Return a listening socket; raises OSError when the address is in use or not ours."""
    family, *_ = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
    return socket.create_server((host, number), family=family, backlog=BACKLOG)


def reason_of(error: OSError) -> str:
    """Return why listening failed, without the address, which asyncio and socket add to it."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else str(error.strerror)  # a name that is not found has no errno


if __name__ == "__main__":
    sys.exit(main())
