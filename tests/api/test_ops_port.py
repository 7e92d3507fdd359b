"""OPS_BIND: the public port is the webhook alone, everything else has a port of its own."""

import http.client
import re
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from shared.sandbox.ports import LOOPBACK, free_port
from tests.api.harness import UNREACHABLE_DATABASE, UNREACHABLE_REDIS, Headers, body_of, signed
from tests.api.running import RunningApi, read_all
from tests.api.test_process import ended, listens

TOKEN = "throwaway-ops-token"
BEARER = f"Bearer {TOKEN}".encode()
STOP_WITHIN = timedelta(seconds=10)
PRIVATE = ["/readyz", "/metrics", "/openapi.json", "/v1/jobs", "/v1/stats", "/v1/jobs/job_demo", "/admin"]
ELSEWHERE = ["/", "/livez/", "/webhooks/sume/", "//readyz", "/livez/../readyz", "/v1%2Fjobs", "/%72eadyz", "/livez%00"]


class SplitApi(RunningApi):
    """A receiver whose operators have a port of their own."""

    def __init__(self, folder: Path, *arguments: str, host: str = LOOPBACK, **settings: str) -> None:
        self.ops_port = free_port()
        super().__init__(folder, *arguments, OPS_BIND=f"{host}:{self.ops_port}", OPS_TOKEN=TOKEN, **settings)


def get(port: int, path: str, *, host: str = LOOPBACK) -> tuple[int, str]:
    """Ask with the operator's token; returns the status and the body."""
    client = http.client.HTTPConnection(host, port, timeout=20)
    try:
        client.request("GET", path, headers={"Authorization": BEARER.decode()})
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def test_the_public_port_is_the_webhook_alone(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """It claims, it lives, and it answers 404 to everything else, however the path is written."""
    with SplitApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        assert api.deliver("job_demo")[0] == 204
        assert get(api.port, "/livez")[0] == 200
        assert get(api.port, "/webhooks/sume")[0] == 405
        found = {path: get(api.port, path) for path in PRIVATE + ELSEWHERE}
        assert found == dict.fromkeys(found, (404, '{"error":{"code":"not_found","message":"Not Found."}}'))


def test_the_ops_port_serves_the_rest(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """Health, metrics, the document and the operator API answer there, and see what the public port claimed."""
    with SplitApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        assert api.deliver("job_demo")[0] == 204
        paths = ["/livez", *PRIVATE[:-1]]
        assert {path: get(api.ops_port, path)[0] for path in paths} == dict.fromkeys(paths, 200)
        assert '"job_id":"job_demo"' in get(api.ops_port, "/v1/jobs")[1]
        assert 'sume_deliveries_total{code="accepted"} 1.0' in get(api.ops_port, "/metrics")[1]


def test_without_ops_bind_one_port_serves_everything(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """The default keeps everything together."""
    with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=redis_url, OPS_TOKEN=TOKEN) as api:
        paths = ["/livez", *PRIVATE[:-1]]
        assert {path: get(api.port, path)[0] for path in paths if "job_demo" not in path} == {
            path: 200 for path in paths if "job_demo" not in path
        }


def test_every_process_serves_both_ports(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """Metrics are those of all of them, on whichever process the scrape lands, also after one was replaced."""
    with SplitApi(tmp_path, "--processes", "3", DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        api.process.wait_for_log("api.started", times=3)
        for number in range(20):
            assert api.deliver(f"job-{number}")[0] == 204
        scrapes = [get(api.ops_port, "/metrics")[1] for _ in range(10)]
        assert all('sume_deliveries_total{code="accepted"} 20.0' in text for text in scrapes)
        assert {get(api.port, "/metrics")[0] for _ in range(10)} == {404}
        assert api.process.terminate(within=STOP_WITHIN) == 0
    assert not listens(api.port)
    assert not listens(api.ops_port)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_sigterm_drains_both_ports(processes: str, tmp_path: Path, database_url: str, redis_url: str) -> None:
    """A delivery and an operator's request that are half sent are both answered before it ends with 0."""
    with SplitApi(tmp_path, "--processes", processes, DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        delivery = body_of("job_half")
        halves = [
            begin(api.port, "/webhooks/sume", delivery, headers=signed(delivery)),
            begin(api.ops_port, "/v1/jobs", b'{"job_id": "job_watched"}', headers=[(b"authorization", BEARER)]),
        ]
        exit_codes: list[int] = []
        stopping = threading.Thread(target=lambda: exit_codes.append(api.process.terminate(within=STOP_WITHIN)))
        stopping.start()
        deadline = time.monotonic() + 5
        while listens(api.port) or listens(api.ops_port):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        answers = [finish(connection, rest) for connection, rest in halves]
        stopping.join(20)
    assert (answers, exit_codes) == ([b"HTTP/1.1 204", b"HTTP/1.1 201"], [0])


def begin(port: int, path: str, body: bytes, *, headers: Headers) -> tuple[socket.socket, bytes]:
    """Send a request but for the last byte of its body, which is returned; the application reads it already."""
    connection = socket.create_connection((LOOPBACK, port), timeout=20)
    lines = [b"POST %s HTTP/1.1" % path.encode(), b"Host: test", b"Content-Length: %d" % len(body)]
    lines += [b"%s: %s" % header for header in headers] + [b"Expect: 100-continue", b"", b""]
    connection.sendall(b"\r\n".join(lines))
    assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(body[:-1])
    return connection, body[-1:]


def finish(connection: socket.socket, rest: bytes) -> bytes:
    """Send the last byte; returns the beginning of the answer."""
    with connection:
        connection.sendall(rest)
        return read_all(connection)[:12]


def test_an_ipv6_address_in_brackets(tmp_path: Path, database_url: str, redis_url: str) -> None:
    """The operators' port may be on IPv6 while the public one is not."""
    if not socket.has_ipv6 or not can_bind("::1"):
        pytest.skip("no IPv6 loopback here")
    with SplitApi(tmp_path, host="[::1]", DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        assert get(api.ops_port, "/readyz", host="::1")[0] == 200
        assert re.search(rf'"ops_url": ?"http://\[::1\]:{api.ops_port}"', api.process.log())
        assert not listens(api.ops_port)


def can_bind(host: str) -> bool:
    """Whether a server could listen there."""
    try:
        socket.create_server((host, 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_a_malformed_ops_bind_is_exit_2(tmp_path: Path) -> None:
    """One line names the setting, and nothing listens."""
    servers = {"DATABASE_URL": UNREACHABLE_DATABASE, "REDIS_URL": UNREACHABLE_REDIS}
    found = ended(tmp_path, OPS_BIND="8001", **servers)
    assert found == (2, "OPS_BIND: must be host:port, an IPv6 host in brackets\n")


def test_an_ops_port_in_use_is_exit_1(tmp_path: Path) -> None:
    """Also where it is the public port itself."""
    servers = {"DATABASE_URL": UNREACHABLE_DATABASE, "REDIS_URL": UNREACHABLE_REDIS}
    port = free_port()
    found = ended(tmp_path, "--port", str(port), OPS_BIND=f"{LOOPBACK}:{port}", **servers)
    assert found == (1, f"cannot listen on {LOOPBACK}:{port}: Address already in use\n")
