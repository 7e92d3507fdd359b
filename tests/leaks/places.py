"""Every place where something planted might come out, read whole."""

import base64
import http.client
import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from shared.cli.main import main
from shared.sandbox.ports import LOOPBACK
from tests.leaks.stage import Stage

TABLES = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'sume\\_%' ORDER BY 1"
SHOWN = ("job_done", "job_failed", "job_raises", "job_redirected")
KEPT = {"sume_jobs": ["payload", "status_url"], "sume_quarantine": ["body", "body_sha256"]}
"""What is kept exactly as it came, for handler, poller and replay, and shown to nobody."""


def logs(stage: Stage) -> Iterator[tuple[str, str]]:
    """Every line that any process of ours wrote."""
    for name, process in stage.system.processes.items():
        yield f"log of {name}", process.log()


def rows(stage: Stage) -> Iterator[tuple[str, str]]:
    """Every column of every table but those that keep a body as it came."""
    with psycopg.connect(stage.system.postgres.url) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            without = "".join(f" - '{column}'" for column in KEPT.get(table, []))
            select = f"SELECT to_jsonb(t){without} FROM {table} t"  # noqa: S608 - names from the catalogue
            found = connection.execute(select.encode()).fetchall()
            yield f"table {table}", json.dumps(found, default=str)


def messages(stage: Stage) -> Iterator[tuple[str, str]]:
    """Every key of Redis with all it holds, unpacked."""
    with redis.Redis.from_url(stage.system.environment["REDIS_URL"]) as client:
        readers: dict[bytes, Any] = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1),
            b"stream": client.xrange,
        }
        for key in client.scan_iter():
            yield f"Redis key {key!r}", f"{key!r} {unpacked(readers[client.type(key)](key))}"


def unpacked(value: Any) -> str:
    """Return a value of Redis as text, inflated where RQ deflated it."""
    if isinstance(value, dict):
        return " ".join(f"{unpacked(key)}={unpacked(inner)}" for key, inner in value.items())
    if isinstance(value, (list, set, tuple)):
        return " ".join(unpacked(inner) for inner in value)
    if isinstance(value, bytes):
        try:
            return zlib.decompress(value).decode("latin-1")
        except zlib.error:
            return value.decode("latin-1")
    return str(value)


def answers(stage: Stage) -> Iterator[tuple[str, str]]:
    """What the api answers to those who may ask, to those who may not, and to nonsense."""
    token = stage.planted["ops-token"]
    bearer = {"Authorization": f"Bearer {token}"}
    job_ids = json.loads(get(stage, "/v1/jobs?limit=500", bearer)[1])["jobs"]
    paths = ["/livez", "/readyz", "/metrics", "/openapi.json", "/v1/jobs?limit=500", "/v1/stats"]
    paths += [f"/v1/jobs/{job['job_id']}" for job in job_ids]
    for path in paths:
        status, body = get(stage, path, bearer)
        assert status == 200, path
        yield path, body
    note = stage.planted["body"].removesuffix("+/%~")
    for path, headers in (
        ("/v1/jobs", {"Authorization": f"Bearer {stage.planted['forged-header']}"}),
        (f"/v1/jobs?state={note}", bearer),
        (f"/v1/jobs?cursor={note}", bearer),
        (f"/v1/jobs/-{note}", bearer),
        (f"/nowhere?x={note}", bearer),
    ):
        status, body = get(stage, path, headers)
        assert status in {401, 404, 422}, path
        yield f"error of {path}", body
    wanted = json.dumps({"job_id": "a", "status_url": f"https://x.example/?token={note}"})
    status, body = get(stage, "/v1/jobs", bearer, method="POST", body=wanted)
    assert status == 422
    yield "error of expect", body
    for signature in ("", stage.planted["forged-header"]):
        headers = {"X-Sume-Signature": signature, "X-Sume-Timestamp": "1"}
        status, body = get(stage, "/webhooks/sume", headers, method="POST", body=note)
        assert status == 401
        yield "refusal of a delivery", body


def get(
    stage: Stage, path: str, headers: dict[str, str], *, method: str = "GET", body: str | None = None, port: int = 0
) -> tuple[int, str]:
    """Ask the api, or who listens on `port`; returns status, and headers and body as one text."""
    client = http.client.HTTPConnection(LOOPBACK, port or stage.system.api_port, timeout=20)
    try:
        client.request(method, path, body, headers)
        answer = client.getresponse()
        text = answer.read().decode()
        return answer.status, text if not port else f"{answer.headers}\n{text}"
    finally:
        client.close()


def pages(stage: Stage) -> Iterator[tuple[str, str]]:
    """What rq-dashboard shows, message by message."""
    credentials = base64.b64encode(f"ops:{stage.planted['ops-token']}".encode()).decode()
    basic = {"Authorization": f"Basic {credentials}"}
    registries = ("queued", "started", "finished", "failed", "deferred", "scheduled", "canceled")
    paths = ["/", "/0/view/queues", "/0/view/workers", "/0/view/jobs", "/0/data/queues.json", "/0/data/workers.json"]
    paths += [f"/0/view/jobs/sume/{registry}/99/asc/1" for registry in registries]
    listed = [f"/0/data/jobs/sume/{registry}/99/asc/1.json" for registry in registries]
    for path in [*paths, *listed]:
        status, body = get(stage, path, basic, port=stage.dashboard_port)
        assert status in {200, 308}, path
        yield f"page {path}", body
    for path in listed:
        body = get(stage, path, basic, port=stage.dashboard_port)[1].partition("\n\n")[2]
        for message in json.loads(body)["jobs"]:
            for own in (f"/0/view/job/{message['id']}", f"/0/data/job/{message['id']}.json"):
                yield f"page {own}", get(stage, own, basic, port=stage.dashboard_port)[1]


def commands(stage: Stage) -> Iterator[tuple[str, str]]:
    """What the commands print, for people and for scripts."""
    for arguments in (
        ["list"],
        ["list", "--json"],
        ["stats"],
        ["stats", "--json"],
        ["audit"],
        ["audit", "--json"],
        ["check"],
        ["check", "--json"],
        ["quarantine", "list"],
        ["quarantine", "list", "--json"],
        *(["show", job_id] for job_id in SHOWN),
    ):
        output = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(output):
            patch.chdir(stage.system.folder)
            for name, value in stage.system.environment.items():
                patch.setenv(name, value)
            main(arguments)
        assert "Traceback" not in output.getvalue()
        yield f"sume-jobs {' '.join(arguments)}", output.getvalue()


def elsewhere(stage: Stage) -> Iterator[tuple[str, str]]:
    """Alerts, manifests, names of files, and command lines that any user of the machine can read."""
    yield "alerts", "\n".join(stage.inbox.received)
    root = stage.system.settings.storage_path
    for folder, folders, files in os.walk(root):  # unlike rglob at ease with what is gone when it gets there
        yield "names of files", "\n".join([folder, *folders, *files])
        if "manifest.json" in files:
            yield "manifest", Path(folder, "manifest.json").read_text(encoding="utf-8")
    for name, process in stage.system.processes.items():
        yield f"command line of {name}", Path(f"/proc/{process.pid}/cmdline").read_text(encoding="utf-8")
