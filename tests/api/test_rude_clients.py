"""Clients that break off, never end or send in crumbs, on real connections."""

import select
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.api.harness import UNREACHABLE_REDIS, body_of, signed
from tests.api.running import RunningApi, read_all

LIMIT = 100_000
TIMEOUT = 2.0
HEAD = b"POST /webhooks/sume HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


@pytest.fixture
def api(tmp_path: Path, database_url: str) -> Iterator[RunningApi]:
    """A receiver with a small limit and little patience."""
    settings = {"WEBHOOK_MAX_BYTES": str(LIMIT), "WEBHOOK_TIMEOUT_SECONDS": str(TIMEOUT)}
    with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=UNREACHABLE_REDIS, **settings) as running:
        yield running


def head(body: bytes) -> bytes:
    """Return the head of a genuine delivery, without what says how long its body is."""
    return HEAD + b"".join(b"%s: %s\r\n" % pair for pair in signed(body))


def test_a_body_in_chunks_of_one_byte_is_taken(api: RunningApi) -> None:
    """However it is cut, it is one body."""
    body = body_of("job_crumbs")
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    with api.connect() as connection:
        connection.sendall(head(body) + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 204 ")


@pytest.mark.parametrize("framing", [b"Content-Length: %d\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n"])
def test_half_a_body_and_a_closed_connection_is_no_delivery(api: RunningApi, framing: bytes) -> None:
    """It is forgotten, and others are answered as if it had not been; no error is logged."""
    body = body_of("job_half")
    for _ in range(20):
        with api.connect() as connection:
            connection.sendall(head(body) + framing % len(body) + body[:20])
    assert api.deliver("job_other")[0] == 204
    log = api.process.log()
    assert "job_half" not in log
    assert "Traceback" not in log
    assert '"error"' not in log


def test_gzip_is_refused_before_a_byte_of_it_is_read(api: RunningApi) -> None:
    """What was signed is what must be sent: nothing is unpacked, so there is no bomb."""
    with api.connect() as connection:
        connection.sendall(head(b"x") + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\n\x1f")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 415 ")
    assert b"unsupported_encoding" in answer


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_an_endless_body_is_cut(api: RunningApi, pause: float) -> None:
    """By its size where it comes fast, by its time where it comes slowly; the sender cannot go on for ever."""
    chunk = b"%x\r\n%s\r\n" % (5_000 if not pause else 10, b"x" * (5_000 if not pause else 10))
    started, received = time.monotonic(), b""
    with api.connect() as connection:
        connection.sendall(head(b"x") + b"Transfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            while time.monotonic() - started < TIMEOUT + 8:
                connection.sendall(chunk)
                if select.select([connection], [], [], pause)[0]:
                    break  # an answer came
        with suppress(ConnectionError):
            received = read_all(connection)
    assert time.monotonic() - started < TIMEOUT + 6
    assert received[9:12] == (b"408" if pause else b"413")
    assert api.deliver("job_other")[0] == 204


@pytest.mark.parametrize("at_once", [True, False])
def test_a_request_for_another_protocol_is_refused_and_its_body_is_no_request(api: RunningApi, at_once: bool) -> None:  # noqa: FBT001 - parametrized
    """A body that is a request would otherwise reach what a proxy in front keeps from the world."""
    inner = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    outer = b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n" % len(inner)
    with api.connect() as connection:
        connection.sendall(b"POST /webhooks/sume HTTP/1.1\r\nHost: x\r\n" + outer + (inner if at_once else b""))
        answer = connection.recv(65_536)
        with suppress(OSError):  # hung up by then, which is as good
            if not at_once:
                connection.sendall(inner)
            answer += read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"upgrade_not_supported" in answer
    assert answer.count(b"HTTP/1.1") == 1
    assert b"sume_deliveries" not in answer
