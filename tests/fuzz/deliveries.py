"""Strategies of deliveries: nearly right ones, hostile ones, and noise."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from shared import clock
from shared.sume.signature import sign
from tests.conftest import SIGNING_SECRET

JOB_IDS = st.one_of(
    st.sampled_from(
        ["job_a", "job_b", "job:c", "A" * 128, "a" * 129, "-a", "", "job a", "job\n", "jöb", "\u0661", "../x"]
    ),
    st.text(max_size=20),
)
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(
        [2**53 + 1, 10**400, -1e308, float("inf"), float("nan"), "\ud800", "\x00", "\ufeff", "OK", "ERROR"]
    ),
    st.text(max_size=30),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.one_of(
    st.sampled_from(
        ["job.completed", "job.failed", "job.canceled", "webhook.test", "job.exploded", "", "JOB.COMPLETED"]
    ),
    VALUES,
)
ARTIFACTS = st.lists(
    st.fixed_dictionaries({}, optional={"url": VALUES, "size_bytes": VALUES, "sha256": VALUES}), max_size=3
)
REST = {
    "status": SCALARS,
    "status_url": SCALARS,
    "error": VALUES,
    "artifacts": ARTIFACTS | VALUES,
    "result": st.fixed_dictionaries({"artifacts": ARTIFACTS}) | VALUES,
    "extra": VALUES,
}
CLAIMS = st.fixed_dictionaries(
    {
        "event": st.sampled_from(["job.completed", "job.failed", "job.canceled"]),
        "job_id": st.sampled_from(["job_a", "job_b", "job:c", "A" * 128]),
    },
    optional=REST,
)
ENVELOPES = CLAIMS | st.fixed_dictionaries({}, optional={"event": EVENTS, "job_id": JOB_IDS | VALUES, **REST})


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """One body: an envelope written in many ways, or mangled, or no JSON at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(NO_ENVELOPES) | st.binary(max_size=200))
    text = json.dumps(draw(ENVELOPES), ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 9)) == 0:  # two job_ids, whatever the first one was
        text = '{"job_id": "job_first", ' + text[1:]
    body = text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"])), "surrogatepass")
    if draw(st.integers(0, 5)) == 0:
        place = draw(st.integers(0, len(body)))
        body = body[:place] + draw(st.binary(max_size=3)) + body[place + draw(st.integers(0, 3)) :]
    return body


NO_ENVELOPES = [
    b"", b"null", b"[]", b"{}", b"7", b'"', b"\xff", b"\x00", b"[" * 20_000, b'{"a":' * 20_000, b"1" * 5_000,
    b'{"event":"job.completed","job_id":"job_n","n":' + b"9" * 5_000 + b"}",
    b'{"event":"job.completed","job_id":"job_n","n":1e400}',
    b'{"event":"job.completed","job_id":"job_d","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"event":"job.completed","job_id":"job_s","x":"\\ud800\\u0000"}',
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Delivery:
    """What arrives, and whether whoever sent it knew the secret and the time."""

    headers: list[tuple[bytes, bytes]]
    chunks: list[bytes]
    genuine: bool

    @property
    def body(self) -> bytes:
        """All of it."""
        return b"".join(self.chunks)


NOISE = st.lists(
    st.tuples(
        st.sampled_from([b"content-type", b"x-sume-version", b"x-\xff", b"cookie", b"content-length"]),
        st.sampled_from([b"7", b"0", b"application/json", b"\xff\xfe", b"a" * 5_000]),
    ).filter(lambda header: header[0] != b"content-length" or header[1].isdigit()),
    max_size=3,
)
FORGED = st.sampled_from(
    [b"", b"v1=", b"v1=" + b"0" * 64, b"v1=\xff", b"v2=" + b"a" * 64, b",".join([b"v1=" + b"a" * 64] * 50)]
)
STAMPS = st.sampled_from(
    [b"", b"1_7", b"+1", b" 1", b"-1", b"9" * 400, "\u0661".encode(), b"1700000000", b"1.5", b"\xff"]
)


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    """One delivery: half of them genuine, the others forged, old, doubled or without what they need."""
    body = draw(bodies())
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    stamp = str(int(clock.unix_seconds())).encode()
    signature = sign(SIGNING_SECRET.encode(), timestamp=stamp.decode(), body=body).encode()
    headers, genuine = draw(NOISE), draw(st.booleans())
    if genuine:
        signature = b",".join([*draw(st.lists(FORGED, max_size=2)), signature.upper().replace(b"V1=", b"v1=")])
    else:
        how = draw(st.sampled_from(["forged", "stamped", "other body", "missing", "doubled"]))
        if how == "forged":
            signature = draw(FORGED)
        elif how == "stamped":
            stamp = draw(STAMPS)
        elif how == "other body":
            chunks = [*chunks, b" "]
        elif how == "doubled":
            headers = [*headers, (b"x-sume-signature", signature)]
        else:
            stamp = b""
    headers = [*headers, (b"x-sume-signature", signature), (b"x-sume-timestamp", stamp)]
    return Delivery(draw(st.permutations(headers)), chunks, genuine)
