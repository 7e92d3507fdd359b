"""What the public port serves where OPS_BIND gives everything else a port of its own."""

from starlette.types import ASGIApp, Receive, Scope, Send

from api.answers import ErrorResponse
from api.webhook import PATH

PUBLIC_PATHS = frozenset({PATH, "/livez"})


class PublicPort:
    """The app with all but the webhook and /livez taken away, so that a proxy may forward every path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI's one method
        if scope["type"] == "http" and scope["path"] not in PUBLIC_PATHS:
            await ErrorResponse(404, "not_found", "Not Found.")(scope, receive, send)
        else:
            await self._app(scope, receive, send)
