"""One process that serves: uvicorn, set up for small requests and an orderly end."""

import gc
import logging
import os
import signal
import socket
from types import FrameType
from typing import Any

from uvicorn import Config, Server

from api.app import create_app
from api.connection import bounded_connection
from shared.config import Settings
from shared.logs import get_logger
from shared.metrics import Metrics

KEEP_ALIVE_SECONDS = 65
"""Longer than the 60 s of common proxies, so that it is never we who hang up on a request under way."""
SHUTDOWN_SECONDS = 7
"""For answering what was taken; the drains after it are bounded to end within 10 s in all."""
GC_THRESHOLD = (50_000, 50, 100)


class ReceiverServer(Server):
    """uvicorn's server, which ends with status 0 after SIGTERM, and when the process it was forked from is gone."""

    def __init__(self, config: Config, *, parent: int | None) -> None:
        super().__init__(config)
        self._parent = parent

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in good order; uvicorn would raise the signal again afterwards. A second Ctrl-C does not wait."""
        del frame
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and take what exists now out of the garbage collector's sight: it caused 20 ms pauses."""
        await super().startup(sockets)
        for listener in sockets or []:
            get_logger().info("api.started", url=url_of(listener))
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)

    async def on_tick(self, counter: int) -> bool:
        """Go on unless asked to stop or orphaned."""
        orphaned = self._parent is not None and os.getppid() != self._parent
        return await super().on_tick(counter) or orphaned


def serve(
    settings: Settings, *, listener: socket.socket, parent: int | None = None, metrics_folder: str | None = None
) -> int:
    """Serve until told to stop, and return the exit status."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its start and stop are told by us
    app = create_app(settings, metrics=Metrics(shared_folder=metrics_folder))
    http: Any = bounded_connection(settings.seconds("webhook_timeout"))
    config = Config(
        app,
        loop="uvloop",
        http=http,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = ReceiverServer(config, parent=parent)
    server.run(sockets=[listener])
    get_logger().info("api.stopped")
    return 0 if server.started else 1


def url_of(listener: socket.socket) -> str:
    """Return where a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
