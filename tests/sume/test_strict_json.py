"""Both parsers give one verdict."""

import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from shared.sume.strict_json import MAX_NESTING, MAX_NUMBER_LENGTH, read_object, read_object_exactly

KEYS = st.sampled_from(["job_id", "event", "a", "job_\u0131d"]) | st.text(max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
FRAGMENTS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"', b'"job_id"', b'"job_\\u0069d"', b'"a"', b"1", b"-", b"0", b".5", b"e9",
     b"1e400", b"NaN", b"Infinity", b"true", b"null", b" ", b"\n", b"\x0c", b"\x00", b"\x1f", b"\x7f", b"\xef\xbb\xbf",
     b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\\", b"\\ud800", b"\\u0000", b"\\x", b"\xe2\x80\xa8",
     b"9" * 30, b"9" * 400]
)  # fmt: skip


def verdict(body: bytes, *, exactly: bool) -> object:
    """Return what one way of reading says about a body: its keys and whether job_id is repeated, or a refusal."""
    try:
        document, repeated = read_object_exactly(body) if exactly else read_object(body)
    except ValueError:
        return "refused"
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    return sorted(document), texts, repeated


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.booleans(), st.data())
def test_a_mangled_document_has_one_verdict(document: object, ascii_only: bool, data: st.DataObject) -> None:  # noqa: FBT001 - drawn
    """Real documents, and those with bytes cut out or put in, are judged alike by the fast and the strict way."""
    body = bytearray(json.dumps(document, ensure_ascii=ascii_only).encode(errors="replace"))
    for _ in range(data.draw(st.integers(0, 2))):
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(start + 3, len(body))))
        body[start:end] = data.draw(FRAGMENTS | st.just(b""))
    assert verdict(bytes(body), exactly=False) == verdict(bytes(body), exactly=True)


@settings(max_examples=300)
@given(st.lists(FRAGMENTS, max_size=12).map(b"".join) | st.binary(max_size=40))
@example(b'{"job_id":1,"job_id":2}')
@example(b'{"a":' + b"9" * 309 + b"}")
@example(b'{"a":-' + b"9" * 4299 + b"}")
@example(b'{"a":0.' + b"9" * 4300 + b"}")
@example(b'{"a":' + b"[" * 511 + b"]" * 511 + b"}")
@example(b'{"a":' + b"[" * 512 + b"]" * 512 + b"}")
@example(b'{"a":' + b"[" * 1100 + b"]" * 1100 + b"}")
def test_any_bytes_have_one_verdict(body: bytes) -> None:
    """Bytes that look like JSON by chance are judged alike too."""
    assert verdict(body, exactly=False) == verdict(body, exactly=True)
    if body.startswith(b"{"):
        inside = b'{"x":' + body + b"}"
        assert verdict(inside, exactly=False) == verdict(inside, exactly=True)


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.integers(1, 3), st.booleans())
def test_a_repeated_job_id_is_always_seen(document: dict[str, object], times: int, escaped: bool) -> None:  # noqa: FBT001 - drawn
    """However job_id is spelled and whatever stands around it, a second one at the top level is found."""
    assume("job_id" not in document)
    spelled = '"\\u006aob_id"' if escaped else '"job_id"'
    pairs = [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in document.items()]
    body = "{" + ",".join([*pairs, '"job_id":1', *[f"{spelled}:1"] * (times - 1)]) + "}"
    assume("NaN" not in body)
    assume("Infinity" not in body)
    assert read_object(body.encode())[1] is (times > 1)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_is_judged_by_depth_alone(opening: str) -> None:
    """The deepest accepted nesting is the same on every machine, and width does not count."""
    closing = "]" if opening == "[" else "}"

    def nested(levels: int) -> bytes:
        return ('{"a":' + opening * levels + "1" + closing * levels + "}").encode()

    assert read_object(nested(MAX_NESTING - 1))
    with pytest.raises(ValueError, match="deeply"):
        read_object(nested(MAX_NESTING))


@pytest.mark.parametrize("number", ["9" * MAX_NUMBER_LENGTH, "0." + "9" * (MAX_NUMBER_LENGTH - 2)])
def test_the_longest_number_is_accepted_and_one_digit_more_is_not(number: str) -> None:
    """Integers and fractions have one bound, whichever parser meets them."""
    assert read_object(f'{{"a":{number}}}'.encode())
    with pytest.raises(ValueError, match="too long"):
        read_object(f'{{"a":{number}9}}'.encode())
