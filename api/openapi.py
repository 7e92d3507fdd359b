"""The OpenAPI document, with the webhook in it, which FastAPI cannot describe by itself."""

from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.types import Receive, Scope, Send

from api.answers import REFUSALS
from api.webhook import PATH, Webhook
from shared.claims.records import JobPage, JobRecord, Stats
from shared.config import Settings
from shared.event import EVENT_NAMES
from shared.sume.payload import MAX_STATUS_URL

DESCRIPTION = """Receives Sume's webhooks, stores each job once, and shows what became of it."""

MEANINGS = {
    204: "The delivery is stored (new or known), a test, or kept in quarantine",
    400: "Genuine but not understandable; kept in quarantine",
    401: "Not signed, wrongly signed, or too old",
    405: "Not a POST",
    408: "The body did not arrive in time",
    413: "The body is too large",
    415: "The body is encoded",
    500: "No signing secret is configured; send it again later",
    503: "The claim could not be stored; send it again after Retry-After seconds",
}

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}

OPTIONAL_TIME: dict[str, Any] = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}

SECRET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "One secret of SUME_COM_WEBHOOK_SIGNING_SECRET, by its place in the setting",
    "properties": {
        "position": {"type": "integer"},
        "last_used_at": OPTIONAL_TIME,
    },
}

ERROR_CONTENT = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}

ANSWERS = {
    ("/v1/jobs", "get"): "JobPage",
    ("/v1/jobs", "post"): "Job",
    ("/v1/jobs/{job_id}", "get"): "Job",
    ("/v1/jobs/{job_id}/requeue", "post"): "Job",
    ("/v1/stats", "get"): "Stats",
}
"""The operator API: what each operation answers with."""

ERRORS = {
    "401": "OPS_TOKEN is missing or wrong",
    "404": "Not known, or OPS_TOKEN is not set",
    "409": "Not in a state that allows it",
    "422": "Bad input",
    "503": "The database does not answer",
}

BODY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["event"],
    "properties": {
        "event": {"type": "string", "examples": [*EVENT_NAMES, "webhook.test"]},
        "job_id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
        "status": {"type": "string", "enum": ["OK", "ERROR"]},
        "status_url": {"type": "string"},
        "error": {"type": "object"},
        "artifacts": {"type": "array", "items": {"type": "object"}},
    },
    "additionalProperties": True,
}


def describe_webhook(settings: Settings) -> dict[str, Any]:
    """Return the webhook's operation: its headers, its body and every answer."""
    return {
        "operationId": "receive_delivery",
        "summary": "Receive one delivery from Sume",
        "tags": ["webhook"],
        "parameters": [
            describe_header(settings.sume_signature_header, "v1=<hex HMAC-SHA256 of timestamp.body>, comma-separated"),
            describe_header(settings.sume_timestamp_header, "Unix seconds, ASCII digits"),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": BODY_SCHEMA}}},
        "responses": {str(status): describe_answer(status) for status in sorted({204, *REFUSALS.values()})},
    }


def describe_status_url(settings: Settings) -> dict[str, Any]:
    """Return what a status_url must be like to be asked with our key."""
    parts = urlsplit(settings.sume_api_base_url)
    origin = f"{parts.scheme}://{parts.netloc}".replace(".", r"\.")
    return {"type": "string", "pattern": rf"^{origin}([/?#][!-\[\]-~]*)?$", "maxLength": MAX_STATUS_URL}


def describe_header(name: str, text: str) -> dict[str, Any]:
    """Return one required header."""
    return {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}


def describe_answer(status: int) -> dict[str, Any]:
    """Return one answer, with the codes it may carry."""
    answer: dict[str, Any] = {"description": MEANINGS[status]}
    codes = [code for code, code_status in REFUSALS.items() if code_status == status]
    if codes:
        answer["description"] += ": " + ", ".join(f"`{code}`" for code in codes)
        answer["content"] = ERROR_CONTENT
    if "claim_not_stored" in codes:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait"}}
    return answer


def describe_shapes() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schemas of the operator API's answers by name, and the definitions they refer to."""
    records: dict[str, Any] = {"Job": JobRecord, "JobPage": JobPage, "Stats": Stats}
    schemas, definitions = TypeAdapter.json_schemas(
        [(name, "serialization", TypeAdapter(record)) for name, record in records.items()],
        ref_template="#/components/schemas/{model}",
    )
    shapes = {name: schemas[name, "serialization"] for name in records}
    stats = definitions["$defs"]["Stats"]["properties"]
    stats["queue_depth"] = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    stats["polling"] = {"type": "string", "description": '"on", or why it is off'}
    stats["signing_secrets"] = {"type": "array", "items": SECRET_SCHEMA}
    del stats["secrets_used"]
    stats["last_seen"]["additionalProperties"] = OPTIONAL_TIME
    return shapes, definitions["$defs"]


def describe_all(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """Return the whole document."""
    document = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes)
    shapes, definitions = describe_shapes()
    document["components"] = {
        "schemas": {**definitions, "Error": ERROR_SCHEMA},
        "securitySchemes": {"OPS_TOKEN": {"type": "http", "scheme": "bearer"}},
    }
    for (path, method), shape in ANSWERS.items():
        operation = document["paths"][path][method]
        operation["security"] = [{"OPS_TOKEN": []}]
        for answer in operation["responses"].values():
            answer["content"] = {"application/json": {"schema": shapes[shape]}}
        for status, meaning in ERRORS.items():
            operation["responses"][status] = {"description": meaning, "content": ERROR_CONTENT}
    expecting = document["paths"]["/v1/jobs"]["post"]
    expecting["responses"]["200"] = {**expecting["responses"]["201"], "description": "The job is known already"}
    expected = expecting["requestBody"]["content"]["application/json"]["schema"]["properties"]
    expected["status_url"]["anyOf"][0] = describe_status_url(settings)
    document["paths"][PATH] = {"post": describe_webhook(settings)}
    return document


class ReceiverApp(FastAPI):
    """A FastAPI app that hands deliveries to the webhook itself, and describes it in its document.

    FastAPI's layers do nothing for a plain ASGI endpoint, and took a quarter of the time of a delivery.
    """

    def __init__(self, settings: Settings, *, webhook: Webhook, **options: Any) -> None:
        super().__init__(**options)
        self._settings = settings
        self.webhook = webhook

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] == "http" and scope["path"] == PATH:
            await self.webhook(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """Return the document, made when it is first asked for."""
        if self.openapi_schema is None:
            self.openapi_schema = describe_all(self, self._settings)
        return self.openapi_schema
