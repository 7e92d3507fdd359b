"""One process that serves: uvicorn, set up for small requests and an orderly end."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

from starlette.types import ASGIApp
from uvicorn import Config, Server

from api.app import create_app
from api.connection import bounded_connection
from api.garbage import forget_imports, leave_what_stays
from api.public import PublicPort
from api.webhook import Webhook
from shared.config import Settings
from shared.logs import get_logger
from shared.metrics import Metrics

KEEP_ALIVE_SECONDS = 65
"""Longer than the 60 s of common proxies, so that it is never we who hang up on a request under way."""
SHUTDOWN_SECONDS = 7
"""For answering what was taken; the drains after it are bounded to end within 10 s in all."""


class ReceiverServer(Server):
    """uvicorn's server, which ends with status 0 after SIGTERM, and when the process it was forked from is gone.

    A second socket, where there is one, is served with `ops` in place of `config`; both end together.
    """

    def __init__(self, config: Config, *, parent: int | None, ops: Config | None = None) -> None:
        super().__init__(config)
        self._parent = parent
        self._ops = ops

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in good order; uvicorn would raise the signal again afterwards. A second Ctrl-C does not wait."""
        del frame
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, the second socket too, and take what exists now out of the garbage collector's sight."""
        public, *private = sockets or []
        await super().startup([public])
        for listener in private:
            await self._serve_operators(listener)
        get_logger().info("api.started", url=url_of(public), ops_url=url_of(private[0]) if private else None)
        leave_what_stays()

    async def on_tick(self, counter: int) -> bool:
        """Go on unless asked to stop or orphaned."""
        orphaned = self._parent is not None and os.getppid() != self._parent
        return await super().on_tick(counter) or orphaned

    async def _serve_operators(self, listener: socket.socket) -> None:
        """Serve one more socket; what uvicorn keeps of its connections and servers, it drains and closes."""
        ops = self._ops
        if ops is None:
            raise ValueError("a second socket needs a configuration")
        ops.load()

        def connection() -> asyncio.Protocol:
            options: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state}
            protocol: Callable[..., asyncio.Protocol] = ops.http_protocol_class
            return protocol(config=ops, **options)

        self.servers.append(await asyncio.get_running_loop().create_server(connection, sock=listener))


def serve(
    settings: Settings, *, listeners: list[socket.socket], parent: int | None = None, metrics_folder: str | None = None
) -> int:
    """Serve until told to stop, and return the exit status.

    The first socket is the public one; a second is the operators', and then the first serves the webhook alone.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # its start and stop are told by us
    forget_imports()
    app = create_app(settings, metrics=Metrics(shared_folder=metrics_folder))
    webhook = app.webhook
    if len(listeners) > 1:
        server = ReceiverServer(
            configured(PublicPort(app), settings, webhook=webhook),
            parent=parent,
            ops=configured(app, settings, webhook=webhook, lifespan="off"),
        )
    else:
        server = ReceiverServer(configured(app, settings, webhook=webhook), parent=parent)
    server.run(sockets=listeners)
    get_logger().info("api.stopped")
    return 0 if server.started else 1


def configured(app: ASGIApp, settings: Settings, *, webhook: Webhook, lifespan: Literal["on", "off"] = "on") -> Config:
    """Return uvicorn's settings for one port."""
    http: Any = bounded_connection(settings.seconds("webhook_timeout"), webhook=webhook)
    return Config(
        app,
        loop="uvloop",
        http=http,
        ws="none",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def url_of(listener: socket.socket) -> str:
    """Return where a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
