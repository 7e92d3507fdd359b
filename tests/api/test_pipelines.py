"""Deliveries that a client sends before it has the answers to those before them."""

import asyncio
import gc
import weakref

import pytest
from structlog.testing import capture_logs

from api.connection import PIPELINE_LIMIT, BoundedConnection
from shared.config import Settings
from shared.metrics import Gauges
from tests.api.harness import body_of, run
from tests.api.wire import ACCEPTED, Receiver, deliveries, request, rests, serving, statuses
from tests.conftest import MakeSettings


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    """Return the usual settings."""
    return make_settings()


def test_deliveries_behind_one_another_are_answered_in_their_order(settings: Settings) -> None:
    """Genuine ones and refused ones, all of one read: each has its answer, and each genuine one its claim."""
    genuine = [request(body_of(f"job-{number}")) for number in range(4)]
    unsigned, unknown = request(body_of(), headers=[]), request(body_of("job_x", "job.exploded"))
    elsewhere = request(body_of(), line=b"POST /webhooks/other HTTP/1.1")
    sent = [*genuine[:2], unsigned, genuine[2], request(b"{"), unknown, genuine[3], elsewhere, unsigned]

    async def story() -> None:
        async with serving(settings) as receiver:
            transport = receiver.connect()
            await receiver.send(transport, b"".join(sent))
            await receiver.answered(len(sent))
            assert statuses(transport) == [204, 204, 401, 204, 400, 204, 204, 404, 401]
            assert receiver.claims.batches == [["job-0"], ["job-1"], ["job-2"], ["job-3"]]
            assert receiver.tasks.made == len(sent) - len(genuine)
            assert rests(transport)

    run(story)


def test_deliveries_behind_one_another_wait_for_the_claim_before_them(settings: Settings) -> None:
    """The next one of a connection is begun when the one before is answered; meanwhile no more is read."""

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, deliveries(3))
            await receiver.claiming()
            assert (transport.written, transport.reading) == (b"", False)
            receiver.claims.gate.set()
            await receiver.answered(3)
            assert transport.written == (ACCEPTED + b"\r\n") * 3
            assert transport.reading
            assert receiver.claims.batches == [["job-0"], ["job-1"], ["job-2"]]
            assert receiver.tasks.made == 0

    run(story)


@pytest.mark.parametrize("place", ["in its head", "after its head", "in its body"])
def test_half_a_delivery_behind_a_whole_one_is_answered_when_it_is_whole(settings: Settings, place: str) -> None:
    """The first is answered without it; meanwhile the clock of an arriving request runs for the other."""
    second = request(body_of("job-second"))
    head = second.index(b"\r\n\r\n") + 4
    cut = {"in its head": head // 2, "after its head": head, "in its body": (head + len(second)) // 2}[place]

    async def story() -> None:
        async with serving(settings) as receiver:
            transport = receiver.connect()
            await receiver.send(transport, request(body_of("job-first")) + second[:cut])
            await receiver.until(lambda: receiver.state.total_requests)
            assert transport.written == ACCEPTED + b"\r\n"
            assert transport.protocol._deadline is not None
            await receiver.send(transport, second[cut:])
            await receiver.answered(2)
            assert transport.written == (ACCEPTED + b"\r\n") * 2
            assert receiver.claims.batches == [["job-first"], ["job-second"]]
            assert receiver.tasks.made == (place != "in its head")
            assert rests(transport)

    run(story)


def test_a_delivery_that_becomes_whole_during_the_claim_before_it_is_answered(settings: Settings) -> None:
    """It waits for its turn, and is claimed without a task then."""
    both = deliveries(2)

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            for piece in (both[: len(both) // 2 + 20], both[len(both) // 2 + 20 :]):
                await receiver.send(transport, piece)
            await receiver.claiming()
            receiver.claims.gate.set()
            await receiver.answered(2)
            assert transport.written == (ACCEPTED + b"\r\n") * 2
            assert receiver.claims.batches == [["job-0"], ["job-1"]]
            assert receiver.tasks.made == 0

    run(story)


def test_a_client_that_does_not_read_is_answered_no_further(settings: Settings) -> None:
    """Once its transport asks to pause, one more is claimed and waits, and no more than one read is taken besides."""

    async def story() -> None:
        async with serving(settings) as receiver:
            transport = receiver.connect()
            transport.high_water = 3 * len(ACCEPTED)
            await receiver.send(transport, deliveries(20))
            await receiver.noted(4)
            for _ in range(100):  # turns of the loop: whatever would be begun is begun
                await asyncio.sleep(0)
            assert (len(statuses(transport)), receiver.claims.deliveries.total()) == (3, 4)
            await receiver.send(transport, request(body_of("job-20")))
            assert (transport.reading, receiver.claims.deliveries.total(), receiver.tally.noted) == (False, 4, 4)
            while receiver.state.total_requests < 21:
                transport.read()
                await receiver.until(
                    lambda: transport.protocol.flow.write_paused or receiver.state.total_requests == 21
                )
            assert statuses(transport) == [204] * 21
            assert receiver.claims.batches == [[f"job-{number}"] for number in range(21)]
            assert transport.reading

    run(story)


NO_HTTP = "Invalid HTTP request received."


def test_a_client_cannot_fill_the_memory_with_requests(settings: Settings) -> None:
    """Nobody sends so many without waiting for an answer: it is refused and hung up on before more of them are kept."""

    async def story() -> None:
        async with serving(settings, warned=[NO_HTTP]) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, deliveries(1) + b"GET /livez HTTP/1.1\r\n\r\n" * 5_000)
            assert statuses(transport) == [400]
            assert transport.is_closing()
            assert len(transport.protocol.pipeline) == PIPELINE_LIMIT

    run(story)


@pytest.mark.parametrize(
    ("behind", "warned"),
    [
        (b"garbage\r\n\r\n", [NO_HTTP]),
        (request(body_of("job-other"), b"Connection: Upgrade", b"Upgrade: h2c"), []),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_what_is_refused_behind_a_delivery_costs_its_answer_and_not_its_claim(
    settings: Settings,
    behind: bytes,
    warned: list[str],
    whole: bool,  # noqa: FBT001 - parametrized
) -> None:
    """The connection is gone when the claim is durable: it is counted once, and no error of ours is logged."""
    delivery = request(body_of("job-first"))

    async def story() -> None:
        async with serving(settings, warned=warned) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            if whole:
                await receiver.send(transport, delivery + deliveries(1) + behind)
            else:
                await receiver.send(transport, delivery[:-3])
                await receiver.send(transport, delivery[-3:])
                await receiver.claiming()
                await receiver.send(transport, deliveries(1) + behind)
            await receiver.until(lambda: transport.lost)
            receiver.claims.gate.set()
            await receiver.noted(1)
            assert statuses(transport) == [400]
            assert receiver.claims.batches == [["job-first"]]
            shown = receiver.metrics.render(Gauges())
            assert b'sume_deliveries_total{code="accepted"} 1.0' in shown
            assert b"internal_error" not in shown

    with capture_logs() as lines:
        run(story)
    assert [line["event"] for line in lines if line["log_level"] == "error"] == []


async def come_and_go(receiver: Receiver, *, meanwhile: bool) -> "weakref.ref[BoundedConnection]":
    """Deliver once and hang up, before or after the answer; return what may be left of the connection."""
    receiver.claims.gate.clear()
    transport = receiver.connect()
    await receiver.send(transport, deliveries(1))
    await receiver.claiming()
    if meanwhile:
        transport.close()
    receiver.claims.gate.set()
    await receiver.noted(1)
    transport.close()
    await receiver.until(lambda: transport.lost)
    receiver.opened.clear()
    left = weakref.ref(transport.protocol)
    del transport.protocol  # as a real transport lets go of it
    return left


@pytest.mark.parametrize("meanwhile", [True, False])
def test_a_connection_that_is_gone_leaves_nothing_to_the_garbage_collector(settings: Settings, meanwhile: bool) -> None:  # noqa: FBT001 - parametrized
    """It works seldom here: what is not let go of at once adds up."""

    async def story() -> None:
        async with serving(settings) as receiver:
            left = await come_and_go(receiver, meanwhile=meanwhile)
            await asyncio.sleep(0)
            assert left() is None

    gc.collect()
    gc.disable()
    try:
        run(story)
    finally:
        gc.enable()
