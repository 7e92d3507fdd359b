"""The OpenAPI document, with the webhook in it, which FastAPI cannot describe by itself."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.answers import REFUSALS
from api.webhook import PATH
from shared.config import Settings
from shared.event import EVENT_NAMES

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


def describe_header(name: str, text: str) -> dict[str, Any]:
    """Return one required header."""
    return {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}


def describe_answer(status: int) -> dict[str, Any]:
    """Return one answer, with the codes it may carry."""
    answer: dict[str, Any] = {"description": MEANINGS[status]}
    codes = [code for code, code_status in REFUSALS.items() if code_status == status]
    if codes:
        answer["description"] += ": " + ", ".join(f"`{code}`" for code in codes)
        answer["content"] = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    if "claim_not_stored" in codes:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait"}}
    return answer


def describe_all(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """Return the whole document."""
    document = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    document["paths"][PATH] = {"post": describe_webhook(settings)}
    components["securitySchemes"] = {"OPS_TOKEN": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path.startswith("/v1/"):
                operation["security"] = [{"OPS_TOKEN": []}]
            if "422" in operation["responses"]:
                operation["responses"]["422"] = {
                    "description": "Bad input",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
    return document
