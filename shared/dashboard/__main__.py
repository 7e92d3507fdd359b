"""`python -m shared.dashboard`: rq-dashboard behind a password."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from shared import logs
from shared.config import Settings
from shared.errors import SettingsError
from shared.queue import connect

PORTS = range(1, 65_536)
LARGEST_BODY = 1024
"""Bytes; no page takes any, and waitress reads a body before a password is asked for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the dashboard until SIGTERM or SIGINT and return the exit status."""
    options = parse(arguments)
    try:
        settings = Settings.load("OPS_TOKEN", "REDIS_URL")
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logs.configure(settings, process="dashboard")
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # warns of every page that loads six files
    try:
        from waitress import create_server  # type: ignore[import-untyped] # noqa: PLC0415 - in the dashboard extra

        from shared.dashboard.app import create_app  # noqa: PLC0415 - the same
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is not installed; the dashboard needs: pip install 'sume-jobs[dashboard]'\n")
        return 1
    app = create_app(settings, client=connect(settings))
    try:
        server = create_server(
            app, host=options.host, port=options.port, ident=None, max_request_body_size=LARGEST_BODY
        )
    except OSError as error:
        sys.stderr.write(f"cannot listen on {options.host}:{options.port}: {error.strerror}\n")
        return 1
    signal.signal(signal.SIGTERM, stop)
    logs.get_logger().info("dashboard.started", host=options.host, port=options.port)
    server.run()
    return 0


def stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """End the server's loop, which expects this exception."""
    raise SystemExit


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; exits with 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m shared.dashboard",
        description="Show the queue; the user is ops, the password OPS_TOKEN.",
        epilog="example: python -m shared.dashboard --port 9181",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=port, default=9181, help="port (default: %(default)s)")
    return parser.parse_args(arguments)


def port(value: str) -> int:
    """Read a TCP port."""
    if not value.isascii() or not value.isdigit() or int(value) not in PORTS:
        raise argparse.ArgumentTypeError("must be a whole number from 1 to 65535")
    return int(value)


if __name__ == "__main__":
    sys.exit(main())
