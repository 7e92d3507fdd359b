"""Headers that are odd, doubled, late or forged, grouped by kind, through the whole receiver."""

from collections.abc import Callable
from typing import Any

import pytest

from shared import clock
from shared.config import Settings
from shared.errors import SettingsError
from shared.sume.signature import sign
from tests.api.harness import Headers, body_of, deliver, receiving, run, signed
from tests.api.running import RunningApi, read_all
from tests.api.test_checks import AWAY
from tests.api.test_deliveries import rows
from tests.conftest import SIGNING_SECRET, MakeSettings

BODY = body_of()


def stamped(timestamp: bytes) -> Headers:
    """Return headers that are genuine for any bytes as timestamp: whoever has the secret signed them."""
    text = timestamp.decode("latin-1")
    # sign() encodes as UTF-8, and the receiver takes the bytes: equal for ASCII, which is all that may pass.
    signature = sign(SIGNING_SECRET.encode(), timestamp=text, body=BODY)
    return [(b"x-sume-signature", signature.encode()), (b"x-sume-timestamp", timestamp)]


PASSED, MISSING, STALE = (503, "claim_not_stored"), (401, "missing_signature"), (401, "stale_timestamp")
"""A database that is away answers 503 where every check has passed."""

ARABIC = {48 + digit: 0x660 + digit for digit in range(10)}
TIMESTAMPS: dict[str, tuple[tuple[int, str], Callable[[int], bytes]]] = {
    "now": (PASSED, lambda now: b"%d" % now),
    "zeros before": (PASSED, lambda now: b"000%d" % now),
    "underscore": (MISSING, lambda now: b"%d_%d" % (now // 10, now % 10)),
    "plus": (MISSING, lambda now: b"+%d" % now),
    "minus": (MISSING, lambda now: b"-%d" % now),
    "space before": (MISSING, lambda now: b" %d" % now),
    "space after": (MISSING, lambda now: b"%d " % now),
    "fraction": (MISSING, lambda now: b"%d.0" % now),
    "exponent": (MISSING, lambda now: b"%de0" % now),
    "not ASCII": (MISSING, lambda now: b"%d\xff" % now),
    "Arabic": (MISSING, lambda now: str(now).translate(ARABIC).encode()),
    "empty": (MISSING, lambda _now: b""),
    "zero": (STALE, lambda _now: b"0"),
    "milliseconds": (STALE, lambda now: b"%d" % (now * 1000)),
    "400 digits": (STALE, lambda _now: b"9" * 400),
    "too old": (STALE, lambda now: b"%d" % (now - 400)),
    "too early": (STALE, lambda now: b"%d" % (now + 400)),
}
"""Each is made when its test runs: the window is as short as a slow suite is long."""


@pytest.mark.parametrize("case", TIMESTAMPS)
def test_a_timestamp_is_ascii_digits_within_the_window(case: str, make_settings: MakeSettings) -> None:
    """Whatever int() would take besides, though it be signed; milliseconds and 400 digits are another time."""
    expected, write = TIMESTAMPS[case]

    async def story() -> None:
        async with receiving(make_settings(**AWAY)) as app:
            answer = await deliver(app, BODY, headers=stamped(write(int(clock.unix_seconds()))))
        assert (answer.status, answer.code) == expected

    run(story)


def test_a_replay_inside_the_window_counts_and_outside_is_refused(
    make_settings: MakeSettings, database_url: str, redis_url: str
) -> None:
    """A recorded delivery can do no more than Sume's own repeat does."""
    settings = make_settings(database_url=database_url, redis_url=redis_url)
    fresh, old = signed(BODY, age=200), signed(BODY, age=310)

    async def story() -> None:
        async with receiving(settings) as app:
            assert [(await deliver(app, BODY, headers=fresh)).status for _ in range(3)] == [204] * 3
            assert (await deliver(app, BODY, headers=old)).code == "stale_timestamp"

    run(story)
    assert rows(settings, "SELECT job_id, deliveries FROM sume_jobs") == [("job_demo", 3)]


@pytest.mark.parametrize(("secret", "answer"), [("", 500), (" ", 500), (" \t ,  , ", 500), ("  x  ", 204)])
def test_a_blank_secret_signs_nothing(
    secret: str, answer: int, make_settings: MakeSettings, database_url: str, redis_url: str
) -> None:
    """An empty key would let anybody sign; white space around a real one is no part of it."""
    overrides: dict[str, Any] = {"sume_com_webhook_signing_secret": secret}
    settings = make_settings(database_url=database_url, redis_url=redis_url, **overrides)

    async def story() -> None:
        async with receiving(settings) as app:
            for forged in {secret, secret.strip()}:
                expected = answer if forged == secret.strip() else {500: 500, 204: 401}[answer]
                assert (await deliver(app, BODY, headers=signed(BODY, secret=forged))).status == expected

    run(story)


def test_a_blank_secret_beside_a_real_one_is_refused_at_the_start(make_settings: MakeSettings) -> None:
    """A stray comma must not open the door."""
    with pytest.raises(SettingsError, match="empty entry"):
        make_settings(sume_com_webhook_signing_secret="real, ")


LINES: dict[str, tuple[int, list[bytes]]] = {
    "as they are": (204, [b"X-Sume-Signature: %(s)s", b"X-Sume-Timestamp: %(t)s"]),
    "in capitals": (204, [b"X-SUME-SIGNATURE: %(s)s", b"x-sume-timestamp: %(t)s"]),
    "spaces around": (204, [b"X-Sume-Signature: \t %(s)s \t", b"X-Sume-Timestamp: \t  %(t)s"]),
    "spaces after the time": (401, [b"X-Sume-Signature: %(s)s", b"X-Sume-Timestamp: %(t)s "]),
    "others before": (204, [b"X-Sume-Signature: v0=zz,, v1=%(z)s,%(s)s", b"X-Sume-Timestamp: %(t)s"]),
    "signature twice": (401, [b"X-Sume-Signature: %(s)s", b"x-sume-signature: %(s)s", b"X-Sume-Timestamp: %(t)s"]),
    "timestamp twice": (401, [b"X-Sume-Signature: %(s)s", b"X-Sume-Timestamp: %(t)s", b"X-Sume-Timestamp: %(t)s"]),
    "not ASCII": (401, [b"X-Sume-Signature: %(s)s\xff\xfe", b"X-Sume-Timestamp: %(t)s"]),
    "UTF-8 digits": (401, [b"X-Sume-Signature: %(s)s", b"X-Sume-Timestamp: \xd9\xa1\xd9\xa7"]),
}


def test_header_lines_are_read_as_sent_over_a_connection(tmp_path: Any, database_url: str, redis_url: str) -> None:
    """Names in any case, white space before values is none of them, and no byte crashes what reads them."""
    values = dict(zip((b"s", b"t"), (value for _, value in signed(BODY)), strict=True)) | {b"z": b"0" * 64}
    with RunningApi(tmp_path, DATABASE_URL=database_url, REDIS_URL=redis_url) as api:
        for case, (status, lines) in LINES.items():
            head = b"\r\n".join([b"POST /webhooks/sume HTTP/1.1", b"Host: x", *(line % values for line in lines)])
            with api.connect() as connection:
                length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(BODY)
                connection.sendall(head + b"\r\n" + length + BODY)
                assert read_all(connection).split(b" ")[1] == b"%d" % status, case


def test_the_names_of_headers_are_counted_with_refusals(
    make_settings: MakeSettings, database_url: str, redis_url: str
) -> None:
    """A wrong header name shows in the statistics, without any value, whatever a name is made of."""
    settings: Settings = make_settings(database_url=database_url, redis_url=redis_url)
    odd = [(b"x-sig", b"planted"), (b"x-\xff\x00", b"planted"), (b"n" * 5000, b"planted"), (b"x-when", b"planted")]

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await deliver(app, BODY, headers=odd)).code == "missing_signature"

    run(story)
    assert rows(settings, "SELECT name, count, detail FROM sume_counters") == [
        ("refused:missing_signature", 1, "x-sig, x-when")
    ]
