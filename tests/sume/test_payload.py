"""What a signed body means, row by row of CONTRACT section 4."""

import json

import pytest

from shared.claims.states import Reason
from shared.errors import PermanentError, QuarantinedError
from shared.event import Event
from shared.sume.payload import Ping, Quarantined, error_line, is_job_id, parse_delivery, parse_payload

BOM = b"\xef\xbb\xbf"
GOOD = b'{"event":"job.completed","job_id":"job_demo"}'


def claimed(body: bytes) -> Event:
    """Parse a body that must be claimed."""
    outcome = parse_delivery(body)
    assert isinstance(outcome, Event)
    return outcome


def refused(body: bytes) -> str:
    """Return the code a body is refused with."""
    with pytest.raises(QuarantinedError) as caught:
        parse_delivery(body)
    return caught.value.code


def wrapping(value: str) -> bytes:
    """Return a good body with one more key of any value."""
    return GOOD[:-1] + b',"x":' + value.encode() + b"}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"null",
        b"[]",
        b'"job_demo"',
        b"17",
        GOOD + b"x",
        GOOD + GOOD,
        b"\xff" + GOOD,
        GOOD.replace(b"demo", b"\xc3("),
        GOOD.replace(b"demo", b"\xed\xa0\x80"),
        GOOD.decode().encode("utf-16"),
        GOOD.decode().encode("utf-16-le"),
        GOOD.decode().encode("utf-32"),
        BOM + BOM + GOOD,
        BOM,
        b"\x00" + GOOD,
        GOOD + b"\x00",
        GOOD.replace(b"demo", b"de\x00mo"),
        GOOD.replace(b"demo", b"de\nmo"),
        GOOD.replace(b"demo", b"de\x1fmo"),
        b"{'event': 'job.completed'}",
        b'{"event":"job.completed",}',
        wrapping("NaN"),
        wrapping("Infinity"),
        wrapping("-Infinity"),
        wrapping("01"),
        wrapping("+1"),
        wrapping("\u0661"),
        wrapping("1" * 5000),
        wrapping("-" + "1" * 5000),
        wrapping("0." + "1" * 5000),
        wrapping("1" * 3000 + "." + "1" * 3000),
        wrapping("[" * 20_000 + "]" * 20_000),
        wrapping('{"a":' * 20_000 + "1" + "}" * 20_000),
        wrapping("[" * 600 + "]" * 600),
        wrapping('"\\ud800"')[:-1] + b',"y":' + b"[" * 600 + b"]" * 600 + b"}",
        b"[" * 1_000_000,
    ],
)
def test_what_is_not_strict_json_is_refused(body: bytes) -> None:
    """A body that is not strict UTF-8 JSON, not an object, or absurd is a 400 that goes to quarantine."""
    assert refused(body) == "invalid_json"


@pytest.mark.parametrize(
    "body",
    [
        BOM + GOOD,
        b" \t\r\n" + GOOD + b"\n",
        wrapping("1e400"),
        wrapping("-1e400"),
        wrapping('"\\ud800"'),
        wrapping('"\\u0000"'),
        wrapping('"\x7f \u2028"'),
        wrapping("9007199254740993"),
        wrapping("9" * 400),
        wrapping('"' + "1" * 5000 + '"'),
        wrapping("[" * 500 + "]" * 500),
        wrapping("[" + "{}," * 5000 + "{}]"),
        wrapping('1,"x":2'),
        wrapping('1,"event":"job.completed"'),
        wrapping('{"job_id":"other"}'),
        wrapping('{"job_id":"other","job_id":"another"}'),
        wrapping('"job_id, job_id and job_id"'),
    ],
)
def test_odd_but_real_json_is_claimed_byte_for_byte(body: bytes) -> None:
    """A body that is JSON by the letter is claimed, and its payload encodes to the same bytes."""
    event = claimed(body)
    assert event.job_id == "job_demo"
    assert event.payload.encode() == body


@pytest.mark.parametrize(
    "body",
    [
        b'{"event":"webhook.test"}',
        b'{"event":"webhook.test","job_id":null}',
        b'{"event":"webhook.test","job_id":17}',
        b'{"event":"webhook.test","job_id":"a","job_id":"b"}',
        BOM + b'{"event":"webhook\\u002etest"}',
    ],
)
def test_a_test_event_is_a_ping_whatever_else_it_holds(body: bytes) -> None:
    """A webhook.test is recognised before its job_id is looked at."""
    assert parse_delivery(body) == Ping()


@pytest.mark.parametrize(
    "body",
    [
        b'{"event":"job.completed","job_id":"a","job_id":"a"}',
        b'{"event":"job.completed","job_id":"a","job_\\u0069d":"b"}',
        b'{"event":"job.completed","\\u006aob_id":"a","\\u006Aob_id":"b"}',
        b'{"job_id":null,"event":"job.completed","x":[{"y":1}],"job_id":null}',
        b'{"event":"job.unheard","job_id":"a","job_id":"b"}',
        BOM + b'{"event":"job.completed","job_id":"a","job_id":"b"}',
        b'{"event":"job.completed","job_id":""}',
        b'{"event":"job.completed","job_id":17}',
        b'{"event":"job.completed","job_id":true}',
        b'{"event":"job.completed","job_id":["a"]}',
        b'{"event":"job.completed","job_id":"a\\n"}',
        b'{"event":"job.completed","job_id":"a\\u0000"}',
        b'{"event":"job.completed","job_id":"../a"}',
        b'{"job_id":"-a"}',
        json.dumps({"event": "job.completed", "job_id": "a" * 129}).encode(),
        json.dumps({"event": "job.completed", "job_id": "jöb"}, ensure_ascii=False).encode(),
    ],
)
def test_a_bad_job_id_is_refused(body: bytes) -> None:
    """A job_id that is given twice or is not of the pattern is a 400, whatever the event."""
    assert refused(body) == "invalid_job_id"


@pytest.mark.parametrize("body", [b"{}", b'{"job_id":null}', b'{"event":"job.completed"}', b'{"event":"x"}'])
def test_no_job_id_is_quarantined(body: bytes) -> None:
    """A body without a job_id, or with null, is accepted and kept in quarantine."""
    assert parse_delivery(body) == Quarantined("no_job_id")


@pytest.mark.parametrize(
    "event", [None, "", "job.unheard", "JOB.COMPLETED", "job.completed ", 17, ["job.completed"], {}, "webhook.tes"]
)
def test_an_unknown_event_is_quarantined(event: object) -> None:
    """Any event but the three, missing or of another type included, is accepted and kept in quarantine."""
    assert parse_delivery(json.dumps({"job_id": "a", "event": event}).encode()) == Quarantined("unknown_event")
    assert parse_delivery(b'{"job_id":"a"}') == Quarantined("unknown_event")


@pytest.mark.parametrize(
    ("name", "stated", "status", "conflict"),
    [
        ("job.completed", "OK", "OK", None),
        ("job.completed", "ERROR", "ERROR", "status ERROR"),
        ("job.failed", "ERROR", "ERROR", None),
        ("job.failed", "OK", "OK", "status OK"),
        ("job.canceled", "OK", "OK", "status OK"),
        *[("job.completed", odd, "OK", None) for odd in (None, "", "ok", "error", 0, True, ["ERROR"], {"OK": 1})],
        *[("job.canceled", odd, "ERROR", None) for odd in (None, "", "ok", 1, ["OK"])],
    ],
)
def test_a_stated_status_decides_and_the_event_fills_any_other(
    name: str, stated: object, status: str, conflict: str | None
) -> None:
    """OK and ERROR are taken as stated, a contradiction is marked, and anything else is filled from the event."""
    event = claimed(json.dumps({"job_id": "a", "event": name, "status": stated}).encode())
    assert (event.name, event.status, event.conflict) == (name, status, conflict)


def test_of_equal_keys_the_last_counts_on_both_parsers() -> None:
    """Two statuses give the last one, with and without what sends a body to the slower parser."""
    body = b'{"job_id":"a","event":"job.failed","event":"job.completed","status":"OK","status":"ERROR"}'
    fast, slow = claimed(body), claimed(BOM + body)
    assert (fast.name, fast.status) == (slow.name, slow.status) == ("job.completed", "ERROR")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("https://api.open.sume.com/v1/jobs/a/status?x=%2f", True),
        ("anything printable", True),
        ("", False),
        ("https://a/\n", False),
        ("https://a/\ud800", False),
        ("https://ä/", False),
        ("https://a/" + "b" * 2048, False),
        (17, False),
        (None, False),
        (["https://a/"], False),
    ],
)
def test_a_status_url_is_kept_when_it_can_be(value: object, kept: bool) -> None:  # noqa: FBT001 - a column of the table
    """A printable status_url of sane length is kept exactly; anything else is as if there were none."""
    event = claimed(json.dumps({"job_id": "a", "event": "job.failed", "status_url": value}).encode())
    assert event.status_url == (value if kept else None)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ({"code": "nsfw", "message": "Refused", "public_reason": "policy"}, "nsfw: Refused (policy)"),
        ({"message": "a\r\nb\x00\x1b[31mc\ud800"}, "a b [31mc"),
        ({"code": "x", "message": "see https://u:p@media.sume.com/a?sig=s3cr3t"}, None),
        ({"public_reason": "policy"}, "(policy)"),
        ({"code": 17, "message": ["a"], "public_reason": {}}, None),
        ({"code": "", "message": " "}, None),
        ({}, None),
        ("boom", None),
        (None, None),
    ],
)
def test_an_error_is_one_clean_line(error: object, line: str | None) -> None:
    """Sume's error is code, message and public reason on one line, without control characters."""
    event = claimed(json.dumps({"job_id": "a", "event": "job.failed", "error": error}).encode())
    if line is None and event.error is not None:
        assert "s3cr3t" not in event.error
        assert "u:p" not in event.error
        assert "media.sume.com/a" in event.error
    else:
        assert event.error == line


def test_an_error_line_is_bounded_and_belongs_to_error_events() -> None:
    """A huge error is cut, and an OK event has none."""
    assert len(error_line({"message": "x" * 100_000, "public_reason": "y" * 100_000}) or "") == 500
    body = {"job_id": "a", "event": "job.completed", "error": {"message": "old"}}
    assert claimed(json.dumps(body).encode()).error is None


def test_a_refusal_repeats_nothing_of_the_body() -> None:
    """The message of a refusal says what is wrong without quoting what came."""
    for body in (b'{"s3cr3t"', b"s3cr3t\xff", b'{"event":"job.failed","job_id":"/s3cr3t"}', wrapping("s3cr3t")):
        with pytest.raises(QuarantinedError) as caught:
            parse_delivery(body)
        assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("text", ["a", "0", "job_demo", "A.b:c-d_e", "a" * 128])
def test_a_job_id_of_the_pattern_is_one(text: str) -> None:
    """Letters, digits and . _ : - make a job_id."""
    assert is_job_id(text)


@pytest.mark.parametrize("text", ["", "_a", ".", "..", "a/b", "a b", "a\n", "a%2f", "é", "\u0661", "a" * 129, None, 1])
def test_anything_else_is_no_job_id(text: object) -> None:
    """A job_id never holds a separator, white space or a non-ASCII character."""
    assert not is_job_id(text)


def test_a_stored_payload_is_read_exactly() -> None:
    """The handler sees integers of any size, and a BOM is skipped."""
    assert parse_payload('\ufeff{"n": ' + "9" * 400 + "}") == {"n": int("9" * 400)}


@pytest.mark.parametrize("payload", ["", "[]", "hello", "{", "\ud800", '{"a":NaN}', "[" * 20_000])
def test_a_payload_that_is_no_object_is_permanent(payload: str) -> None:
    """A plain insert's payload that is not a JSON object buries the job with its reason."""
    with pytest.raises(PermanentError) as caught:
        parse_payload(payload)
    assert caught.value.reason == Reason.INVALID_PAYLOAD
