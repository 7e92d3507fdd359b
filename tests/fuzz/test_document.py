"""The OpenAPI document is true: schemathesis finds nothing, and nobody gets in without the token."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK
from tests.api.harness import Headers, call, receiving, run
from tests.api.running import RunningApi
from tests.conftest import MakeSettings
from tests.fuzz.budget import SECONDS

TOKEN = "throwaway-ops-token"
OPEN = {"/livez", "/readyz", "/metrics", "/webhooks/sume"}
WRONG: list[Headers] = [
    [],
    [(b"authorization", b"")],
    [(b"authorization", b"Bearer")],
    [(b"authorization", b"Bearer ")],
    [(b"authorization", b"Bearer wrong")],
    [(b"authorization", f"Bearer {TOKEN}x".encode())],
    [(b"authorization", f"Bearer {TOKEN[:-1]}".encode())],
    [(b"authorization", f"Basic {TOKEN}".encode())],
    [(b"authorization", TOKEN.encode())],
    [(b"authorization", b"Bearer \xff\xfe")],
    [(b"authorization", f"Bearer {TOKEN}".encode()), (b"authorization", b"Bearer wrong")],
    [(b"authorization", f"Bearer {TOKEN}".encode()), (b"authorization", f"Bearer {TOKEN}".encode())],
    [(b"x-authorization", f"Bearer {TOKEN}".encode())],
    [(b"cookie", f"token={TOKEN}".encode())],
]


def test_schemathesis_finds_nothing(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """Every answer is one that the document describes, good input is taken, bad input is refused, nothing breaks."""
    examples = ["--max-time", str(int(SECONDS))] if SECONDS else ["--max-examples", "15"]
    with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=redis_url, OPS_TOKEN=TOKEN) as api:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"http://{LOOPBACK}:{api.port}/openapi.json"),
                *("--header", f"Authorization: Bearer {TOKEN}", "--checks", "all", "--continue-on-failure"),
                *examples,
            ],
            cwd=tmp_path,
            env=child_environment(NO_COLOR="1"),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Tested: 9\b", done.stdout), done.stdout


@pytest.mark.parametrize("ops_token", [TOKEN, None])
def test_every_operation_refuses_whoever_has_no_token(make_settings: MakeSettings, ops_token: str | None) -> None:
    """Each operation of the document, with no token, a wrong one, or two; 404 while there is none at all."""
    unreachable = {"database_url": "postgresql://nobody:pw@127.0.0.1:1/none", "redis_url": "redis://127.0.0.1:1/0"}
    settings = make_settings(ops_token=ops_token, **unreachable)

    async def story() -> None:
        async with receiving(settings) as app:
            document: dict[str, Any] = json.loads((await call(app, "GET", "/openapi.json")).body)
            guarded = {path: list(methods) for path, methods in document["paths"].items() if path not in OPEN}
            assert guarded
            for path, methods in guarded.items():
                for method in methods:
                    assert document["paths"][path][method]["security"] == [{"OPS_TOKEN": []}], (method, path)
                    for headers in WRONG:
                        answer = await call(app, method.upper(), path.format(job_id="job_demo"), headers=headers)
                        assert answer.status == (401 if ops_token else 404), (method, path, headers)
                        assert TOKEN.encode() not in answer.body

    run(story)


def test_what_is_open_is_meant_to_be(make_settings: MakeSettings) -> None:
    """Every route that needs no token is one of health, metrics, the document, and the webhook, which has its own."""
    settings = make_settings(database_url="postgresql://n:p@127.0.0.1:1/x", redis_url="redis://127.0.0.1:1/0")

    async def story() -> None:
        async with receiving(settings) as app:
            document = json.loads((await call(app, "GET", "/openapi.json")).body)
            assert {path for path in document["paths"] if not path.startswith("/v1/")} == OPEN

    run(story)


def test_allow_names_every_method_of_a_path(make_settings: MakeSettings) -> None:
    """Also where two routes share the path."""
    settings = make_settings(
        ops_token=TOKEN, database_url="postgresql://n:p@127.0.0.1:1/x", redis_url="redis://127.0.0.1:1/0"
    )
    expected = {"/v1/jobs": b"GET, POST", "/v1/jobs/a/requeue": b"POST", "/livez": b"GET", "/webhooks/sume": b"POST"}

    async def story() -> None:
        async with receiving(settings) as app:
            for path, methods in expected.items():
                answer = await call(app, "PATCH", path)
                assert (answer.status, answer.headers[b"allow"]) == (405, methods), path

    run(story)
