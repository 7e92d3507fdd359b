"""A whole system with secrets planted everywhere, and every kind of job run through it."""

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg

from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK, free_port
from shared.sandbox.process import Process
from shared.sandbox.sume.answers import Answer
from shared.sandbox.system import System, settings_of
from shared.sandbox.valkey import Valkey
from tests.leaks.planted import new

SOON = timedelta(seconds=40)
HANDLER = """
from shared.errors import PermanentError
TEXT = {text!r}
def handle(job):
    if job.job_id == "job_raises":
        raise RuntimeError(TEXT)
    if job.job_id == "job_gives_up":
        raise PermanentError(TEXT)
    print("handled", job.job_id)
"""


class LockedValkey(Valkey):
    """A Valkey that wants a password."""

    def __init__(self, password: str) -> None:
        super().__init__()
        self._password = password

    @property
    def url(self) -> str:
        """The URL, with the password."""
        return super().url.replace("redis://", f"redis://:{self._password}@")

    def _prepare(self, folder: Path) -> Process:
        (folder / "locked.conf").write_text(f"requirepass {self._password}\n")
        process = super()._prepare(folder)
        binary, *options = process._command
        env = child_environment()
        return Process(
            [binary, folder / "locked.conf", *options], name=self.name, folder=folder, env=env, scratch=folder
        )

    def _ready(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"-NOAUTH")
        except OSError:
            return False


class Inbox:
    """Takes alerts on a loopback port and keeps what came."""

    def __init__(self) -> None:
        self.received: list[str] = []
        received = self.received

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(HTTPStatus.OK)
                self.end_headers()

            def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the standard library's name
                """Say nothing."""

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Taking)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.server_port


class Stage:
    """The system; `planted` is by name what must not come out, `told` what the tests expect to find everywhere."""

    def __init__(self, folder: Path) -> None:
        self.planted = {
            name: new(name)
            for name in ("query", "body", "handler-query", "error-query", "status-query", "redirect-query", "api-error",
                         "alert-password", "redis-password", "old-secret", "forged-header", "url-password")
        }  # fmt: skip
        self.inbox = Inbox()
        self.ops_port, self.dashboard_port = free_port(), free_port()
        self.system = System(folder, dashboard_port=self.dashboard_port)
        environment = self.system.environment
        self.system.valkey = LockedValkey(self.planted["redis-password"].removesuffix("+/%~"))
        environment |= {
            "SUME_COM_WEBHOOK_SIGNING_SECRET": ", ".join(
                [self.planted["old-secret"], environment["SUME_COM_WEBHOOK_SIGNING_SECRET"]]
            ),
            "REDIS_URL": self.system.valkey.url,
            "ALERT_URLS": f"json://ops:{self.alert_password}@{LOOPBACK}:{self.inbox.port}/hook",
            "HANDLER": "leaky_handler:handle",
            "LOG_LEVEL": "debug",
            "MAX_ATTEMPTS": "2",
            "RETRY_FOR_SECONDS": "0",
            "RETRY_BASE_SECONDS": "0.1",
            "RETRY_MAX_SECONDS": "0.2",
            "SWEEP_INTERVAL_SECONDS": "0.5",
            "POLL_INTERVAL_SECONDS": "0.5",
        }
        self.planted |= {
            "signing-secret": environment["SUME_COM_WEBHOOK_SIGNING_SECRET"].rpartition(" ")[2],
            "api-key": environment["SUME_API_KEY"],
            "ops-token": environment["OPS_TOKEN"],
            "database-password": self.system.settings.secret_values()[-1],
        }
        self.system.settings = settings_of(environment)
        user, token = self.planted["url-password"], self.planted["handler-query"]
        text = (
            f"GET https://user:{user}@shop.example/orders?token={token} "
            f"failed with key {environment['SUME_API_KEY']} and v1={'ab' * 32}"
        )
        self.planted["signature"] = "ab" * 32
        (folder / "leaky_handler.py").write_text(HANDLER.format(text=text))

    @property
    def alert_password(self) -> str:
        """The password in ALERT_URLS, in characters a URL takes as they are."""
        return self.planted["alert-password"].removesuffix("+/%~")

    def url(self, path: str, *, query: str = "query", origin: str | None = None) -> str:
        """Return an artifact URL with a planted query."""
        return f"{origin or self.system.sume.media_url}{path}?{self.query(query)}"

    def query(self, name: str) -> str:
        """Return a query with a secret behind characters that may end a URL in a text."""
        return f"expires=(1)&o=O'Brien&l=[]&X-Signature={self.planted[name]}"

    def host(self, path: str, **fields: Any) -> str:
        """Host a picture and return its URL."""
        file = self.system.sume.host(path, b"\x89PNG\r\n\x1a\n" + path.encode() * 99, **fields)
        file._signatures.add(self.query("query"))
        return self.url(path)

    def send(
        self,
        job_id: str,
        event: str = "job.completed",
        *,
        artifacts: Sequence[str] = (),
        stated: Mapping[str, str] | None = None,
        **keys: Any,
    ) -> int:
        """Deliver one signed event with a planted field in its body; `stated` is said of each artifact."""
        listed = [{"url": url, "type": "image", **(stated or {})} for url in artifacts]
        customer = {"note": self.planted["body"]}
        body = {"event": event, "job_id": job_id, "customer": customer, "artifacts": listed, **keys}
        return self.system.sume.post(json.dumps(body).encode())

    def play(self) -> dict[str, str]:
        """Run every kind of job to its end; returns the states they must end in."""
        ends = self._jobs_of_every_kind()
        self._refused_and_quarantined()
        for job_id in ("job_polled", "job_polled_broken"):
            self.system.store.expect(job_id, status_url=None, due_in=timedelta(0))
        for job_id, state in ends.items():
            self.system.until(partial(self.is_in, job_id, state), what=f"{job_id} {state}", within=SOON)
        return ends

    def job_ids(self) -> list[tuple[str]]:
        """Return every job's id."""
        with psycopg.connect(self.system.postgres.url) as connection:
            return connection.execute("SELECT job_id FROM sume_jobs ORDER BY 1").fetchall()

    def is_in(self, job_id: str, state: str) -> bool:
        """Whether a job is in a state, "claimed: <reason>" for one that waits."""
        job = self.system.store.get_job(job_id)
        return job is not None and state in {job.state, f"{job.state}: {job.reason}"}

    def _jobs_of_every_kind(self) -> dict[str, str]:
        sume = self.system.sume
        status_url = f"{sume.api_url}/v1/jobs/job_done/status?token={self.planted['status-query']}"
        foreign = f"https://elsewhere.example/status?token={self.planted['status-query']}"
        error = {
            "code": "generation_failed",
            "message": f"see https://sume.example/logs?token={self.planted['error-query']}",
        }
        sends: list[tuple[int, str, str]] = [
            (
                self.send("job_done", artifacts=[self.host("/job_done/a.png")], status_url=status_url),
                "job_done",
                "done",
            ),
            (self.send("job_done", "job.failed", error=error), "job_done", "done"),
            (self.send("job_failed", "job.failed", error=error, status_url=foreign), "job_failed", "done"),
            (self.send("job_broken", artifacts=[self.host("/job_broken/a.png", status=503)]), "job_broken", "dead"),
            (
                self.send("job_wrong", artifacts=[self.host("/job_wrong/a.png")], stated={"sha256": "0" * 64}),
                "job_wrong",
                "dead",
            ),
            (
                self.send("job_parked", artifacts=[self.url("/a.png", origin="https://not-listed.example")]),
                "job_parked",
                "claimed: host_not_allowed",
            ),
            (
                self.send(
                    "job_redirected",
                    artifacts=[
                        self.host(
                            "/job_redirected/a.png",
                            redirect_to=self.url("/a.png", query="redirect-query", origin="https://away.example"),
                        )
                    ],
                ),
                "job_redirected",
                "claimed: host_not_allowed",
            ),
            (self.send("job_ftp", artifacts=[self.url("/a.png", origin="ftp://127.0.0.1")]), "job_ftp", "dead"),
            (self.send("job_odd", artifacts=[self.url("/a.png", origin="http://[")]), "job_odd", "dead"),
            (
                self.send(
                    "job_user", artifacts=[self.url("/a.png", origin=f"http://u:{self.planted['url-password']}@x")]
                ),
                "job_user",
                "dead",
            ),
            (self.send("job_raises", artifacts=[self.host("/job_raises/a.png")]), "job_raises", "dead"),
            (self.send("job_gives_up", artifacts=[self.host("/job_gives_up/a.png")]), "job_gives_up", "dead"),
            (self.send("job_unlisted", artifacts=[]), "job_unlisted", "dead"),
        ]
        broken = Answer(HTTPStatus.BAD_GATEWAY, f"<p>{self.planted['api-error']}</p>".encode(), "text/html")
        sume.add_job("job_polled", artifacts=[b"\x89PNG\r\n\x1a\n" + b"polled" * 99])
        sume.add_job("job_polled_broken", outcome="processing")
        sume.override("job_polled_broken", broken)
        assert [code for code, _, _ in sends] == [204] * len(sends)
        return {job_id: state for _, job_id, state in sends} | {"job_polled": "done", "job_polled_broken": "expected"}

    def _refused_and_quarantined(self) -> None:
        sume, body = self.system.sume, json.dumps({"customer": self.planted["body"]}).encode()
        codes = [
            sume.post(body, secret=b"wrong"),
            sume.post(body, timestamp="1700000000"),
            sume.post(body, headers={"X-Forged": self.planted["forged-header"], "Content-Encoding": "gzip"}),
            sume.post(body, headers={"X-Sume-Signature": self.planted["forged-header"]}),
            sume.post(body[:-1]),
            sume.post(b'{"event":"job.completed","job_id":"' + self.planted["body"].encode() + b'"}'),
            sume.post(b'{"event":"job.exploded","job_id":"job_x","note":"' + self.planted["body"].encode() + b'"}'),
            sume.post(body),
            sume.send_test(),
        ]
        assert codes == [401, 401, 415, 401, 400, 400, 204, 204, 204]
