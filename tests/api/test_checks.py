"""Every row of the webhook's table: its answer, and that nothing later runs when something earlier fails."""

import asyncio
import hashlib
import hmac

import pytest

from api.answers import REFUSALS
from api.checks import Checks
from shared.errors import DeliveryError
from shared.sume.signature import sign
from tests.api.harness import (
    UNREACHABLE_DATABASE,
    UNREACHABLE_REDIS,
    Headers,
    body_of,
    call,
    deliver,
    receiving,
    run,
    signed,
)
from tests.conftest import SIGNING_SECRET, MakeSettings

BODY = body_of()
NOW = 1_800_000_000
AWAY = {"database_url": UNREACHABLE_DATABASE, "redis_url": UNREACHABLE_REDIS}
"""No check before the claim needs a server; one that asked the database would answer 503."""


def replaced(headers: Headers, name: bytes, *values: bytes) -> Headers:
    """Return the headers with one of them sent with these values instead."""
    return [pair for pair in headers if pair[0] != name] + [(name, value) for value in values]


SIGNATURE, TIMESTAMP = b"x-sume-signature", b"x-sume-timestamp"
REFUSED: dict[str, tuple[str, Headers]] = {
    "no signature": ("missing_signature", replaced(signed(BODY), SIGNATURE)),
    "no timestamp": ("missing_signature", replaced(signed(BODY), TIMESTAMP)),
    "empty": ("missing_signature", replaced(signed(BODY), SIGNATURE, b"")),
    "no v1": ("missing_signature", replaced(signed(BODY), SIGNATURE, b"v2=" + b"a" * 64)),
    "short v1": ("missing_signature", replaced(signed(BODY), SIGNATURE, b"v1=abcd")),
    "not ASCII": ("missing_signature", replaced(signed(BODY), SIGNATURE, b"v1=" + b"\xff" * 64)),
    "twice": ("missing_signature", signed(BODY) + signed(BODY)[:1]),
    "timestamp twice": ("missing_signature", signed(BODY) + signed(BODY)[1:]),
    "timestamp with a sign": ("missing_signature", replaced(signed(BODY), TIMESTAMP, b"+1800000000")),
    "timestamp underscored": ("missing_signature", replaced(signed(BODY), TIMESTAMP, b"1_800_000_000")),
    "timestamp in Arabic": ("missing_signature", replaced(signed(BODY), TIMESTAMP, "١٨".encode())),
    "other secret": ("bad_signature", signed(BODY, secret="another")),
    "other body": ("bad_signature", signed(BODY + b" ")),
    "wrong and stale": ("bad_signature", signed(BODY, secret="another", age=10_000)),
    "stale": ("stale_timestamp", signed(BODY, age=1_000)),
    "from the future": ("stale_timestamp", signed(BODY, age=-100_000)),
    "gzip": ("unsupported_encoding", [*signed(BODY), (b"content-encoding", b"gzip")]),
    "identity and gzip": ("unsupported_encoding", [(b"content-encoding", b"identity, gzip")]),
    "too large by announcement": ("body_too_large", [(b"content-length", b"1048577")]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_delivery_that_fails_a_check_is_refused_with_its_code(case: str, make_settings: MakeSettings) -> None:
    """Each refusal has the contract's status and code, and a message."""
    code, headers = REFUSED[case]

    async def story() -> None:
        async with receiving(make_settings(**AWAY)) as app:
            answer = await deliver(app, BODY, headers=headers)
        assert (answer.status, answer.code) == (REFUSALS[code], code)
        assert answer.json["error"]["message"]

    run(story)


def test_the_checks_run_in_the_contracts_order(make_settings: MakeSettings) -> None:
    """A delivery with every fault is refused for the first; without that for the second; and so on."""
    faults: list[tuple[str, Headers]] = [
        ("body_too_large", [(b"content-length", b"9999")]),
        ("unsupported_encoding", [(b"content-encoding", b"gzip")]),
        ("missing_signature", [(SIGNATURE, b"v1=no"), (TIMESTAMP, b"x")]),
    ]
    large = b"x" * 200

    async def story() -> None:
        async with receiving(make_settings(**AWAY, webhook_max_bytes=100)) as app:
            for number, (code, _) in enumerate(faults):
                headers = [header for _, wrong in faults[number:] for header in wrong]
                assert (await call(app, headers=headers, chunks=[large])).code == code
            unsigned = signed(large, secret="another")
            assert (await call(app, headers=unsigned, chunks=[large])).code == "body_too_large"
            garbage = b"not JSON"
            assert (await deliver(app, garbage, headers=signed(garbage, secret="no"))).code == "bad_signature"
            assert (await deliver(app, garbage, headers=signed(garbage, age=999))).code == "stale_timestamp"
            assert (await deliver(app, garbage)).code == "claim_not_stored"  # quarantine comes before its 400

    run(story)


@pytest.mark.parametrize("secret", ["", None])
def test_without_a_secret_the_fault_is_ours(secret: str | None, make_settings: MakeSettings) -> None:
    """While no secret is configured every delivery is answered 500, so that Sume sends it again."""
    settings = make_settings(**AWAY, sume_com_webhook_signing_secret=secret or ())

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await deliver(app, BODY)).status == 500
            assert (await deliver(app, BODY, headers=[])).code == "signing_secret_not_configured"
            assert (await deliver(app, BODY, headers=[(b"content-encoding", b"br")])).status == 415

    run(story)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_not_allowed(method: str, make_settings: MakeSettings) -> None:
    """Only POST is taken, and the answer names it."""

    async def story() -> None:
        async with receiving(make_settings(**AWAY)) as app:
            answer = await call(app, method, headers=[(b"content-length", b"99999999")])
        assert (answer.status, answer.headers[b"allow"]) == (405, b"POST")

    run(story)


def test_a_body_that_grows_too_large_or_does_not_end_is_refused(make_settings: MakeSettings) -> None:
    """A chunked body over the limit is 413 without being read to its end; one that stalls is 408 in time."""
    settings = make_settings(**AWAY, webhook_max_bytes=100, webhook_timeout_seconds=0.2)

    async def story() -> None:
        async with receiving(settings) as app:
            grown = await call(app, headers=signed(b""), chunks=[b"x" * 60, b"x" * 60])
            assert (grown.status, grown.code) == (413, "body_too_large")
            slow = await call(app, headers=signed(b"x"), chunks=[b"x"], complete=False)
            assert (slow.status, slow.code, slow.headers[b"connection"]) == (408, "body_too_slow", b"close")
            exact = await call(app, headers=signed(b"x" * 100), chunks=[b"x" * 100])
            assert exact.code == "claim_not_stored"

    run(story)


def test_a_trailing_slash_is_not_redirected(make_settings: MakeSettings) -> None:
    """A redirect would lose the body, so another path is simply not found."""

    async def story() -> None:
        async with receiving(make_settings(**AWAY)) as app:
            answer = await call(app, path="/webhooks/sume/", headers=signed(BODY), chunks=[BODY])
        assert (answer.status, answer.code) == (404, "not_found")

    run(story)


def test_the_window_is_closed_at_the_tolerance(make_settings: MakeSettings) -> None:
    """A timestamp exactly as old or as far ahead as the tolerance is accepted; a second more is not."""
    checks = Checks(make_settings(webhook_tolerance_seconds=300), unix_seconds=lambda: float(NOW))

    def judge(timestamp: int) -> None:
        signature = sign(SIGNING_SECRET.encode(), timestamp=str(timestamp), body=BODY)
        signatures, stamp = checks.read_signature(
            [(SIGNATURE, signature.encode()), (TIMESTAMP, str(timestamp).encode())]
        )
        checks.check_signature(signatures, stamp, BODY)

    judge(NOW - 300)
    judge(NOW + 300)
    for timestamp in (NOW - 301, NOW + 301):
        with pytest.raises(DeliveryError, match="clocks") as caught:
            judge(timestamp)
        assert caught.value.code == "stale_timestamp"


def test_headers_are_read_as_the_contract_says(make_settings: MakeSettings) -> None:
    """Names come from the settings, any v1 value and any secret may match, hex in either case."""
    settings = make_settings(
        sume_com_webhook_signing_secret="old, new", sume_signature_header="X-Sig", sume_timestamp_header="X-When"
    )
    checks = Checks(settings, unix_seconds=lambda: float(NOW))
    genuine = hmac.new(b"new", b"%d." % NOW + BODY, hashlib.sha256).hexdigest().upper()
    value = f"v0=zz, v1={'0' * 64} ,v1={genuine}".encode()
    signatures, stamp = checks.read_signature([(b"x-sig", value), (b"x-when", str(NOW).encode())])
    checks.check_signature(signatures, stamp, BODY)


def test_unsigned_traffic_costs_no_write(make_settings: MakeSettings) -> None:
    """Ten thousand unsigned deliveries cause no write of their own: the database is not even there."""

    async def story() -> None:
        async with receiving(make_settings(**AWAY)) as app:
            answers = await asyncio.gather(*(deliver(app, b"{", headers=[]) for _ in range(10_000)))
        assert {answer.status for answer in answers} == {401}

    run(story)
