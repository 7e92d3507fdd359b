"""A request that arrives in one piece, and the same one in two: whatever the way, all that is seen is the same."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from shared.config import Settings
from shared.errors import StoreUnavailableError
from shared.event import Event
from shared.metrics import Gauges
from tests.api.harness import body_of, signed
from tests.api.wire import Receiver, StoredClaims, request, rests, serving
from tests.conftest import MakeSettings

LIMIT = 2_000
Cut = Callable[[bytes], Sequence[int]]


@dataclass
class Seen:
    """All that can be seen of some requests, from the outside and afterwards."""

    answers: list[bytes]
    resting: list[bool]
    lines: list[dict[str, Any]]
    deliveries_counted: list[str]
    counts: Counter[str]
    details: dict[str, str]
    claimed: list[Event]
    quarantined: list[tuple[bytes, str]]
    tasks: int = field(compare=False)


def requests() -> dict[str, tuple[int, list[bytes]]]:
    """Return every request by its name, and how many of them take the short way when they arrive whole."""
    body, other = body_of("job_b"), body_of("job_b", "job.failed", error={"code": "x", "message": "broke"})
    [signature, timestamp] = signed(body)
    repeated = b'{"event": "job.completed", "job_id": "job_a", "job_id": "job_b"}'
    trailer = b"".join(b"%s: %s\r\n" % pair for pair in (signature, timestamp)) + b"\r\n"
    large = body_of("job_large", padding="x" * LIMIT)
    return {
        "completed": (1, [request(body)]),
        "failed": (1, [request(other)]),
        "canceled": (1, [request(body_of("job_c", "job.canceled"))]),
        "a status that contradicts": (1, [request(body_of("job_s", status="ERROR"))]),
        "redelivered": (3, [request(body)] * 3),
        "conflicting": (2, [request(body), request(other)]),
        "two jobs": (2, [request(body), request(body_of("job_d"))]),
        "query string": (1, [request(body, line=b"POST /webhooks/sume?a=b&c HTTP/1.1")]),
        "percent-encoded": (1, [request(body, line=b"POST /webhooks/%73ume HTTP/1.1")]),
        "absolute target": (1, [request(body, line=b"POST http://x/webhooks/sume HTTP/1.1")]),
        "HTTP/1.0": (1, [request(body, line=b"POST /webhooks/sume HTTP/1.0")]),
        "HTTP/1.0, kept alive": (1, [request(body, b"Connection: keep-alive", line=b"POST /webhooks/sume HTTP/1.0")]),
        "to be closed": (1, [request(body, b"Connection: close")]),
        "chunked": (1, [request(body, b"Transfer-Encoding: chunked")]),
        "chunked and refused": (0, [request(b"{", b"Transfer-Encoding: chunked")]),
        "chunked and too large": (0, [request(large, b"Transfer-Encoding: chunked")]),
        "too large": (0, [request(large)]),
        "expecting 100": (0, [request(body, b"Expect: 100-continue")]),
        "expecting 100 in vain": (0, [request(body, b"Expect: 100-continue", headers=[])]),
        "test": (0, [request(body_of("job_a", "webhook.test"))]),
        "unknown event": (0, [request(body_of("job_a", "job.exploded"))]),
        "no job_id": (0, [request(b'{"event": "job.completed"}')]),
        "job_id given twice": (0, [request(repeated)]),
        "job_id no string": (0, [request(b'{"event": "job.completed", "job_id": 7}')]),
        "no JSON": (0, [request(b'{"event": ')]),
        "no UTF-8": (0, [request(b'{"event": "\xff"}')]),
        "empty": (0, [request(b"")]),
        "signed in a trailer": (0, [request(body, b"Transfer-Encoding: chunked", headers=[])[:-2] + trailer]),
        "unsigned": (0, [request(body, headers=[])]),
        "no timestamp": (0, [request(body, headers=[signature])]),
        "signed twice": (0, [request(body, headers=[signature, signature, timestamp])]),
        "forged": (0, [request(body, headers=signed(other))]),
        "stale": (0, [request(body, headers=signed(body, age=301))]),
        "unsigned, to be closed": (0, [request(body, b"Connection: close", headers=[])]),
        "gzip": (0, [request(body, b"Content-Encoding: gzip")]),
        "identity": (1, [request(body, b"Content-Encoding: identity")]),
        "GET": (0, [request(b"", line=b"GET /webhooks/sume HTTP/1.1", headers=[])]),
        "HEAD": (0, [request(b"", line=b"HEAD /webhooks/sume HTTP/1.1", headers=[])]),
        "PUT": (0, [request(body, line=b"PUT /webhooks/sume HTTP/1.1")]),
        "other path": (0, [request(body, line=b"POST /webhooks/other HTTP/1.1")]),
        "trailing slash": (0, [request(body, line=b"POST /webhooks/sume/ HTTP/1.1")]),
        "refused, then genuine": (1, [request(body, headers=[]), request(body)]),
    }


def nowhere(_request: bytes) -> Sequence[int]:
    """Have it arrive whole."""
    return ()


def after_the_head(data: bytes) -> Sequence[int]:
    """Have its body arrive later, or where it has none, half of its head."""
    end = data.index(b"\r\n\r\n") + 4
    return [end if end < len(data) else end // 2]


def in_the_body(data: bytes) -> Sequence[int]:
    """Have half of its body arrive later."""
    end = data.index(b"\r\n\r\n") + 4
    return [(end + len(data)) // 2 if end < len(data) else end - 1]


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return the data in pieces."""
    return [data[start:end] for start, end in pairwise([0, *sorted(cuts), len(data)]) if start < end]


async def send_one_by_one(receiver: Receiver, sent: Sequence[bytes], cut: Cut) -> list[bool]:
    """Send each request when the one before is answered, on a new connection where it must be.

    Returns for each whether the connection rested afterwards.
    """
    resting = []
    transport = receiver.connect()
    for number, each in enumerate(sent, 1):
        if transport.is_closing():
            transport = receiver.connect()
        for piece in pieces(each, cut(each)):
            await receiver.send(transport, piece)
        await receiver.answered(number)
        resting.append(rests(transport))
    return resting


def see(
    settings: Settings,
    sending: Callable[[Receiver], Any],
    problem: Exception | None = None,
    *,
    capacity: int = 20_000,
    stuck: bool = False,
) -> Seen:
    """Run a receiver while something is sent to it, and return all that is seen; where `stuck`, no claim is written."""

    async def story() -> Seen:
        claims = StoredClaims(lambda _events: problem)
        if stuck:
            claims.gate.clear()
        async with serving(settings, claims, capacity=capacity) as receiver:
            resting = await sending(receiver)
            claimed = list(claims.claimed)
            claims.gate.set()
            await receiver.tally.write()
            shown = receiver.metrics.render(Gauges()).decode().splitlines()
            return Seen(
                answers=[transport.written for transport in receiver.opened],
                resting=resting,
                lines=[{name: value for name, value in line.items() if name != "seconds"} for line in lines],
                deliveries_counted=[line for line in shown if line.startswith("sume_deliveries_total")],
                counts=receiver.tally.counters.counts,
                details=receiver.tally.counters.details,
                claimed=claimed,
                quarantined=claims.quarantined,
                tasks=receiver.tasks.made,
            )

    with capture_logs() as lines:
        return asyncio.run(asyncio.wait_for(story(), 60))


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    """Settings with a small limit."""
    return make_settings(webhook_max_bytes=LIMIT)


@pytest.mark.parametrize("cut", [after_the_head, in_the_body])
@pytest.mark.parametrize("name", requests())
def test_a_request_in_one_piece_is_seen_as_one_in_two(settings: Settings, name: str, cut: Cut) -> None:
    """Answers, log, counts, claims, quarantine and clocks are the same; only genuine events need no task."""
    short, sent = requests()[name]
    whole = see(settings, lambda receiver: send_one_by_one(receiver, sent, nowhere))
    apart = see(settings, lambda receiver: send_one_by_one(receiver, sent, cut))
    assert whole == apart
    assert whole.tasks == len(sent) - short
    assert apart.tasks == len(sent)
    assert len(whole.claimed) >= short


@pytest.mark.parametrize("problem", [StoreUnavailableError("locked", reachable=True), ValueError("a defect")])
def test_a_claim_that_fails_is_refused_the_same(settings: Settings, problem: Exception) -> None:
    """A delivery that could not be stored is answered 503 with Retry-After, and told of and counted alike."""
    sent = [request(body_of("job_a")), request(body_of("job_b"))]
    whole = see(settings, lambda receiver: send_one_by_one(receiver, sent, nowhere), problem)
    assert whole == see(settings, lambda receiver: send_one_by_one(receiver, sent, after_the_head), problem)
    assert whole.answers[0].count(b"HTTP/1.1 503 ") == whole.answers[0].count(b"retry-after: 5\r\n") == 2
    assert whole.answers[0].count(b'"claim_not_stored"') == 2
    assert whole.resting == [True, True]
    assert whole.counts["refused:claim_not_stored"] == 2


def test_an_overload_is_refused_the_same(settings: Settings) -> None:
    """Where too many claims wait already, a delivery is answered 503 at once, its signature noted once."""
    sent = [request(body_of())]
    whole = see(settings, lambda receiver: send_one_by_one(receiver, sent, nowhere), capacity=0)
    assert whole == see(settings, lambda receiver: send_one_by_one(receiver, sent, after_the_head), capacity=0)
    assert whole.answers[0].startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5\r\n" in whole.answers[0]
    assert sorted(whole.counts.values()) == [1, 1]  # the refusal, and the secret
    assert whole.claimed == []


def test_a_claim_that_takes_too_long_is_refused_the_same(make_settings: MakeSettings) -> None:
    """A delivery whose claim is not durable at its deadline is answered 503 with Retry-After."""
    settings, sent = make_settings(webhook_timeout_seconds=0.1), [request(body_of())]
    whole = see(settings, lambda receiver: send_one_by_one(receiver, sent, nowhere), stuck=True)
    assert whole == see(settings, lambda receiver: send_one_by_one(receiver, sent, after_the_head), stuck=True)
    assert whole.answers[0].startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5\r\n" in whole.answers[0]
    assert [line["problem"] for line in whole.lines] == ["the database did not answer in time"]
    assert whole.resting == [True]


def test_any_pipeline_cut_anywhere_is_seen_as_each_request_by_itself(settings: Settings) -> None:
    """However many requests stand behind one another, and wherever they are cut, each is answered in its turn."""
    kept_alive = [
        name
        for name, (_, sent) in requests().items()
        if name not in {"too large", "chunked and too large"}
        and not any(b"close" in each or b"HTTP/1.0" in each for each in sent)
    ]

    @hypothesis_settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(kept_alive), min_size=1, max_size=5), st.data())
    def one_round(names: list[str], data: st.DataObject) -> None:
        known = requests()
        sent = [each for name in names for each in known[name][1]]
        stream = b"".join(sent)
        cuts = data.draw(st.lists(st.integers(1, len(stream) - 1), max_size=4))

        async def pipeline(receiver: Receiver) -> list[bool]:
            transport = receiver.connect()
            for piece in pieces(stream, cuts):
                await receiver.send(transport, piece)
            await receiver.answered(len(sent))
            return [rests(transport)] * len(sent)

        assert see(settings, pipeline) == see(settings, lambda each: send_one_by_one(each, sent, nowhere))

    one_round()
