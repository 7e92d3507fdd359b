"""What the operator API accepts, and how it says what is wrong with the rest."""

import re
from typing import Annotated, Any, TypeVar

from fastapi import Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema

from api.answers import OperatorError
from shared.claims.cursor import CURSOR
from shared.claims.states import State
from shared.event import Status
from shared.sume.payload import JOB_ID, is_job_id, read_status_url

YEAR_SECONDS = 31_536_000
BODY_LIMIT = 65_536
LIMIT = 50
LIMIT_MAX = 500

Model = TypeVar("Model", bound=BaseModel)


def check_job_id(value: str) -> str:
    """Refuse what can be no job_id."""
    if not is_job_id(value):
        raise ValueError("must be 1-128 of A-Z a-z 0-9 . _ : - starting with a letter or digit")
    return value


def check_status_url(value: str) -> str:
    """Refuse what cannot be kept."""
    if read_status_url(value) is None:
        raise ValueError("must be a URL of at most 2048 printable ASCII characters")
    return value


def described(pattern: re.Pattern[str]) -> WithJsonSchema:
    """Tell the document what the check beside it accepts."""
    return WithJsonSchema({"type": "string", "pattern": f"^(?:{pattern.pattern})$"})


JobId = Annotated[str, AfterValidator(check_job_id), described(JOB_ID)]
Cursor = Annotated[str, described(CURSOR)]


class Listing(BaseModel):
    """Which jobs to list; other parameters are ignored."""

    state: State | None = None
    status: Status | None = None
    redelivered: bool = False
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = LIMIT
    cursor: Cursor | None = None


class Expectation(BaseModel):
    """A job that was submitted elsewhere and is to be watched."""

    model_config = ConfigDict(strict=True, extra="forbid")

    job_id: JobId
    status_url: Annotated[str, AfterValidator(check_status_url)] | None = None
    due_in_seconds: Annotated[float, Field(ge=0, le=YEAR_SECONDS, allow_inf_nan=False)] | None = None


class Requeue(BaseModel):
    """How to reopen a job; `force` reopens a done one."""

    model_config = ConfigDict(strict=True, extra="forbid")

    force: bool = False


async def read_body_as(model: type[Model], request: Request, *, empty: bytes = b"") -> Model:
    """Return the body as the model, whatever its Content-Type; anything else is 422."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise OperatorError(413, "body_too_large", f"The body is larger than {BODY_LIMIT} bytes.")
    try:
        return model.model_validate_json(bytes(body) or empty)
    except ValidationError as error:
        raise OperatorError(422, "invalid_input", first_problem(error.errors(include_url=False))) from None


def read_query_as(model: type[Model], request: Request) -> Model:
    """Return the query as the model, of a parameter that is repeated the last; anything else is 422."""
    try:
        return model.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise OperatorError(422, "invalid_input", first_problem(error.errors(include_url=False))) from None


def read_job_id(request: Request) -> str:
    """Return the job_id of the path; what can be none is 422."""
    try:
        return check_job_id(request.path_params["job_id"])
    except ValueError as error:
        raise OperatorError(422, "invalid_input", f"job_id: {error}") from None


def first_problem(errors: Any) -> str:
    """Return where the first problem is and what it is, without repeating the value."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part not in {"query", "path", "body"})
    return f"{place or 'body'}: {first['msg'].removeprefix('Value error, ')}"


def body_schema(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """Return the OpenAPI description of a body that the endpoint reads by itself."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}


def query_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a query that the endpoint reads by itself."""
    properties = model.model_json_schema()["properties"].items()
    return {"parameters": [parameter(name, "query", schema) for name, schema in properties]}


def job_id_schema() -> dict[str, Any]:
    """Return the same of a job_id in the path."""
    return {"parameters": [parameter("job_id", "path", TypeAdapter(JobId).json_schema() | {"title": "Job Id"})]}


def parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Describe one parameter."""
    return {"name": name, "in": place, "required": place == "path", "schema": schema}
