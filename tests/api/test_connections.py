"""Clients that are slow, large or rude, on real connections."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.api.harness import UNREACHABLE_REDIS, signed
from tests.api.running import RunningApi, post, read_all

LIMIT = 100_000
TIMEOUT = 1.0
POST = b"POST /webhooks/sume HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def api(tmp_path: Path, database_url: str) -> Iterator[RunningApi]:
    """A receiver with a small limit and little patience."""
    settings = {"WEBHOOK_MAX_BYTES": str(LIMIT), "WEBHOOK_TIMEOUT_SECONDS": str(TIMEOUT)}
    with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=UNREACHABLE_REDIS, **settings) as running:
        yield running


def test_the_refusal_of_a_large_body_reaches_a_client_that_goes_on_sending(api: RunningApi) -> None:
    """A client that sends five megabytes before it reads gets the whole 413, not a reset connection."""
    with api.connect() as connection:
        connection.sendall(POST + b"Content-Length: 5000000\r\n\r\n" + b"x" * 5_000_000)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"body_too_large" in answer
    assert b"connection: close" in answer


def test_the_refusal_of_a_growing_body_reaches_the_client(api: RunningApi) -> None:
    """A chunked body is refused while it is sent, and the answer arrives."""
    headers = b"".join(b"%s: %s\r\n" % pair for pair in signed(b"x"))
    chunk = b"%x\r\n%s\r\n" % (50_000, b"x" * 50_000)
    with api.connect() as connection:
        connection.sendall(POST + headers + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 20 + b"0\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")


def test_two_hundred_slow_clients_are_cut_and_delay_nobody(api: RunningApi) -> None:
    """Silent, half-sent and dripping connections end soon after the time limit; deliveries meanwhile stay fast."""
    beginnings = [b"", POST, POST + b"X-A: b\r\n", POST + b"Content-Length: 10\r\n\r\nabc"]
    signature = b"".join(b"%s: %s\r\n" % pair for pair in signed(b"x"))
    beginnings.append(POST + signature + b"Content-Length: 10\r\n\r\nabc")
    with ExitStack() as stack:
        started = time.monotonic()
        slow = [stack.enter_context(api.connect()) for _ in range(200)]
        for number, connection in enumerate(slow):
            connection.sendall(beginnings[number % len(beginnings)])
        latencies: list[float] = []
        while time.monotonic() - started < TIMEOUT:
            status, seconds = api.deliver(f"job-{len(latencies)}")
            assert status == 204
            latencies.append(seconds)
        answers = [read_all(connection) for connection in slow]
        assert time.monotonic() - started < TIMEOUT + 5
    assert sum(answer.startswith(b"HTTP/1.1 408 ") for answer in answers) == 40  # the signed ones
    assert sorted(latencies)[len(latencies) // 2] < 0.5


def test_a_client_that_drips_headers_is_cut(api: RunningApi) -> None:
    """A byte now and then does not extend the time a request may take to arrive."""
    with api.connect() as connection:
        connection.settimeout(0.1)
        connection.sendall(POST)
        started = time.monotonic()
        while time.monotonic() - started < TIMEOUT + 5:
            try:
                connection.sendall(b"X-Drip: 1\r\n")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - started < TIMEOUT + 4


def test_endless_headers_are_cut_at_once(api: RunningApi) -> None:
    """Headers of many megabytes are not collected."""
    started, sent = time.monotonic(), 0
    with api.connect() as connection, suppress(ConnectionError):
        connection.sendall(POST)
        while sent < 100_000_000:
            connection.sendall(b"X-Large: " + b"x" * 10_000 + b"\r\n")
            sent += 10_000
    assert sent < 20_000_000  # what the sockets had buffered
    assert time.monotonic() - started < TIMEOUT


def test_a_kept_alive_connection_outlives_refusals_and_rests(api: RunningApi) -> None:
    """A refused delivery does not cost the connection, nor does resting longer than one request may take."""
    client = api.client()
    client.putrequest("POST", "/webhooks/sume")
    client.putheader("Content-Length", "1")
    client.endheaders()
    answer = client.getresponse()  # refused before its body came
    assert (answer.status, b"missing_signature" in answer.read()) == (401, True)
    client.send(b"{")
    port = client.sock.getsockname()[1]
    resting_until = time.monotonic() + TIMEOUT + 1.5
    while time.monotonic() < resting_until:
        assert api.deliver("job-other")[0] == 204
    assert post(client, "job-kept")[0] == 204
    assert client.sock.getsockname()[1] == port
    client.close()
