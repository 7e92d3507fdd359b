"""Who may use the operator API: whoever knows OPS_TOKEN."""

import hmac
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from api.answers import ErrorResponse

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def guarded_route(token: bytes) -> type[APIRoute]:
    """Return a class of routes that check the bearer token before they read anything else of the request."""

    class GuardedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handle: Callable[[Request], Awaitable[Response]] = super().get_route_handler()

            async def handle_if_allowed(request: Request) -> Response:
                if not allowed(request, token):
                    return ErrorResponse(
                        401,
                        "unauthorized",
                        "Send the header Authorization: Bearer <OPS_TOKEN>.",
                        headers={"WWW-Authenticate": "Bearer"},
                    )
                return await handle(request)

            return handle_if_allowed

    return GuardedRoute


def allowed(request: Request, token: bytes) -> bool:
    """Whether the one Authorization header holds the token, compared in constant time."""
    values = [value for name, value in request.scope["headers"] if name == b"authorization"]
    scheme, _, given = values[0].partition(b" ") if len(values) == 1 else (b"", b"", b"")
    return hmac.compare_digest(given.strip(), token) and scheme.lower() == b"bearer"


class OperatorApiOff:
    """Answers 404 to everything below /v1 while OPS_TOKEN is not set."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI's one method
        answer = ErrorResponse(404, "not_found", "There is nothing here; the operator API is off without OPS_TOKEN.")
        await answer(scope, receive, send)
