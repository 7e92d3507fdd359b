"""The signature: what was signed matches, and nothing else does."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.sume.signature import matches, parse_signatures, parse_timestamp, sign

SECRETS = st.binary(min_size=1, max_size=80)
TIMES = st.integers(min_value=0, max_value=10**12).map(str)
HEX = "0123456789abcdef" * 4
PUBLISHED = "4d63be28e1b05ad75c48d37b00e6bec48e978c20ebfb85345cd338fd1fc49483"


def accepts(secrets: list[bytes], *, timestamp: str, body: bytes, header: str | bytes) -> bool:
    """Verify a header as the receiver does."""
    raw = header if isinstance(header, bytes) else header.encode()
    return bool(matches(secrets, timestamp=timestamp.encode(), body=body, signatures=parse_signatures(raw)))


def test_the_scheme_is_the_published_one() -> None:
    """The header is v1= and HMAC-SHA256 over timestamp, a dot and the body."""
    # printf '1700000000.{}' | openssl dgst -sha256 -hmac whsec_demo
    assert sign(b"whsec_demo", timestamp="1700000000", body=b"{}") == "v1=" + PUBLISHED


@given(SECRETS, TIMES, st.binary(), st.lists(SECRETS, max_size=3), st.booleans())
def test_what_was_signed_matches(
    secret: bytes,
    timestamp: str,
    body: bytes,
    others: list[bytes],
    upper: bool,  # noqa: FBT001 - drawn
) -> None:
    """Any of several secrets may have signed, in either case of hex."""
    header = sign(secret, timestamp=timestamp, body=body)
    header = "v1=" + header[3:].upper() if upper else header
    assert accepts([*others, secret], timestamp=timestamp, body=body, header=header)
    assert accepts([secret, *others], timestamp=timestamp, body=body, header=header)


@given(SECRETS, TIMES, st.binary(min_size=1), st.data())
def test_any_flipped_bit_fails(secret: bytes, timestamp: str, body: bytes, data: st.DataObject) -> None:
    """One bit changed in body or signature, or one digit in the timestamp, and nothing matches."""
    header = sign(secret, timestamp=timestamp, body=body)
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    flipped = bytearray(body)
    flipped[bit // 8] ^= 1 << bit % 8
    assert not accepts([secret], timestamp=timestamp, body=bytes(flipped), header=header)
    place = data.draw(st.integers(3, len(header) - 1))
    digit = "0" if header[place] != "0" else "1"
    forged = header[:place] + digit + header[place + 1 :]
    assert not accepts([secret], timestamp=timestamp, body=body, header=forged)
    assert not accepts([secret], timestamp=timestamp + "0", body=body, header=header)
    assert not accepts([secret], timestamp="0" + timestamp, body=body, header=header)


@given(SECRETS, SECRETS, TIMES, st.binary())
def test_another_secret_never_matches(secret: bytes, other: bytes, timestamp: str, body: bytes) -> None:
    """Only the secret that signed matches; HMAC pads with zeros, so those at the end say nothing."""
    same = secret.rstrip(b"\0") == other.rstrip(b"\0")
    header = sign(secret, timestamp=timestamp, body=body)
    assert accepts([other], timestamp=timestamp, body=body, header=header) is same


def test_nothing_matches_without_secrets_or_signatures() -> None:
    """No secret and no signature is never a match."""
    header = sign(b"s", timestamp="1", body=b"")
    assert not accepts([], timestamp="1", body=b"", header=header)
    assert not matches([b"s"], timestamp=b"1", body=b"", signatures=[])


class Touchy(bytes):
    """Bytes that may not be compared by a comparison that stops at the first difference."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared with ==")

    __hash__ = bytes.__hash__


def test_every_pair_is_compared_in_constant_time() -> None:
    """Neither the place of a difference nor that of the match shows in the time: no ==, no early end."""
    good = Touchy(sign(b"s", timestamp="1", body=b"x").removeprefix("v1=").encode())
    compared: list[bytes] = []

    def signatures() -> Iterator[bytes]:
        for signature in (good, Touchy(b"0" * 64), good):
            compared.append(signature)
            yield signature

    assert matches([b"s", b"other"], timestamp=b"1", body=b"x", signatures=signatures())
    assert len(compared) == 3


@given(st.lists(st.sampled_from(["v0=x", "v2=" + HEX, "", " ", "v1=", "v1=" + "f" * 64]), max_size=5), st.data())
def test_one_good_signature_in_a_list_is_enough(others: list[str], data: st.DataObject) -> None:
    """The signature may stand anywhere among others, with white space around it."""
    good = data.draw(st.sampled_from(["{}", " {}", "{}\t"])).format(sign(b"s", timestamp="1", body=b"x"))
    values = list(others)
    values.insert(data.draw(st.integers(0, len(values))), good)
    assert accepts([b"s"], timestamp="1", body=b"x", header=",".join(values))


@pytest.mark.parametrize(
    "header",
    [
        "",
        HEX,
        f"v2={HEX}",
        f"V1={HEX}",
        f"v1 ={HEX}",
        f"v1= {HEX}",
        f"v1={HEX}\n",
        f"v1={HEX[1:]}",
        f"v1={HEX}0",
        f"v1={HEX[:-1]}g",
        f"v1={HEX} v1={HEX}",
        f"v1={HEX};v1={HEX}",
        f'"v1={HEX}"',
        f"xv1={HEX}",
        f"v1={HEX[:-2]}é",
        b"v1=" + b"\xff" * 64,
        "v1=" + "\u0661" * 64,
    ],
)
def test_what_is_not_well_formed_is_no_signature(header: str | bytes) -> None:
    """Other versions, other lengths, other digits and non-ASCII bytes are ignored without a crash."""
    assert parse_signatures(header if isinstance(header, bytes) else header.encode()) == []


@given(st.binary())
def test_no_header_crashes(header: bytes) -> None:
    """Any bytes give a list of 64 lower-case hex digits each, and a timestamp or None."""
    assert all(len(value) == 64 and value == value.lower() for value in parse_signatures(header))
    timestamp = parse_timestamp(header)
    assert timestamp is None or timestamp >= 0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"1700000000", 1_700_000_000),
        (b"0001700000000", 1_700_000_000),
        (b"0" * 5000, 0),
        (b"0", 0),
        (b"9" * 400, 10**20 - 1),
        (b"0" * 5000 + b"17", 17),
    ],
)
def test_digits_are_a_timestamp(value: bytes, seconds: int) -> None:
    """Any number of ASCII digits is read, and more than 20 stay far outside any window."""
    assert parse_timestamp(value) == seconds


@pytest.mark.parametrize(
    "value",
    [b"", b"1_7", b"+1", b"-1", b" 1", b"1 ", b"1\n", b"1.0", b"1e9", b"0x1", b"\xd9\xa1", b"\xb2", b"1,1", b"1\0"],
)
def test_anything_but_ascii_digits_is_no_timestamp(value: bytes) -> None:
    """Signs, spaces, fractions and the digits of other scripts are refused, whatever int() would take."""
    assert parse_timestamp(value) is None
