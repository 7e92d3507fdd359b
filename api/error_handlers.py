"""Every error outside the webhook, answered in the one shape."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from api.answers import INTERNAL_ERROR, RETRY_AFTER_SECONDS, ErrorResponse, OperatorError
from api.operator_input import first_problem
from shared.errors import StoreUnavailableError


def answer_errors_in_one_shape(app: FastAPI) -> None:
    """Answer every error as `{"error": {"code", "message"}}`."""

    @app.exception_handler(OperatorError)
    async def refuse(_request: Request, error: OperatorError) -> ErrorResponse:
        return ErrorResponse(error.status, error.code, str(error))

    @app.exception_handler(RequestValidationError)
    async def refuse_input(_request: Request, error: RequestValidationError) -> ErrorResponse:
        return ErrorResponse(422, "invalid_input", first_problem(error.errors()))

    @app.exception_handler(StoreUnavailableError)
    async def say_unavailable(_request: Request, error: StoreUnavailableError) -> ErrorResponse:
        retry = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        return ErrorResponse(503, "store_unavailable", str(error), headers=retry)

    @app.exception_handler(HTTPException)
    async def refuse_request(request: Request, error: HTTPException) -> ErrorResponse:
        code = error.detail.lower().replace(" ", "_")
        headers = dict(error.headers or {})
        if methods := methods_of(app, request.url.path) if "Allow" in headers else None:
            headers["Allow"] = methods
        return ErrorResponse(error.status_code, code, f"{error.detail}.", headers=headers)

    @app.exception_handler(Exception)
    async def say_broken(_request: Request, _error: Exception) -> ErrorResponse:
        return ErrorResponse(500, "internal_error", INTERNAL_ERROR)


def methods_of(app: FastAPI, path: str) -> str:
    """Return every method a path has in our document; the router itself names those of its first route alone."""
    operations = app.openapi()["paths"].items()
    found = {
        method.upper()
        for template, methods in operations
        if compile_path(template)[0].match(path)
        for method in methods
    }
    return ", ".join(sorted(found))
