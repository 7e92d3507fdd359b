"""Deliveries that arrive in one piece: when they are answered, in which order, and what is left of them."""

import asyncio

import pytest
from structlog.testing import capture_logs

from api.journal import Journal
from shared.config import Settings
from shared.errors import DeliveryError, StoreUnavailableError
from shared.metrics import Gauges
from tests.api.harness import Headers, body_of, run, signed
from tests.api.wire import ACCEPTED, StoredClaims, clocks, deliveries, request, rests, serving, statuses
from tests.conftest import MakeSettings


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    """Return the usual settings."""
    return make_settings()


def test_nothing_is_answered_before_the_claim_is_durable(settings: Settings) -> None:
    """A 204 is written after the claim, and not before (I3)."""

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, request(body_of()))
            await receiver.claiming()
            assert transport.written == b""
            receiver.claims.gate.set()
            await receiver.answered(1)
            assert transport.written == ACCEPTED + b"\r\n"
            assert receiver.tasks.made == 0

    run(story)


def test_what_is_signed_only_in_part_is_no_delivery(settings: Settings) -> None:
    """A body whose first part would be genuine is not taken for that when the rest comes later, and is refused."""
    genuine = body_of()
    sent = request(genuine + b" ", headers=signed(genuine))

    async def story() -> None:
        async with serving(settings) as receiver:
            transport = receiver.connect()
            await receiver.send(transport, sent[:-1])
            assert receiver.tasks.made == 1
            await receiver.send(transport, sent[-1:])
            await receiver.answered(1)
            assert statuses(transport) == [401]
            assert receiver.claims.batches == []

    run(story)


def test_no_clock_runs_while_a_claim_is_written_and_the_idle_one_after_its_answer(settings: Settings) -> None:
    """A connection is cut neither for what we take long for, nor later than its idle time after an answer."""

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            assert clocks(transport) == (False, True)
            await receiver.send(transport, request(body_of()))
            assert clocks(transport) == (False, False)
            receiver.claims.gate.set()
            await receiver.answered(1)
            assert clocks(transport) == (True, False)
            await receiver.send(transport, request(body_of())[:5])
            assert clocks(transport) == (False, True)

    run(story)


def test_a_connection_that_rests_is_closed(settings: Settings) -> None:
    """After its idle time a kept-alive connection is closed."""

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.config.timeout_keep_alive = 0
            transport = receiver.connect()
            await receiver.send(transport, request(body_of()))
            await receiver.until(lambda: transport.lost)
            assert transport.written == ACCEPTED + b"\r\n"

    run(story)


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
def test_a_client_that_hangs_up_during_its_claim_has_claimed(settings: Settings, error: Exception | None) -> None:
    """The claim stands and is told of and counted as accepted; nothing is written to the connection that is gone."""

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, request(body_of()))
            await receiver.claiming()
            transport.lose(error)
            receiver.claims.gate.set()
            await receiver.noted(1)
            assert dict(receiver.claims.deliveries) == {"job_demo": 1}
            assert b'sume_deliveries_total{code="accepted"} 1.0' in receiver.metrics.render(Gauges())
            assert transport.written == b""
            assert receiver.tasks.made == 0

    with capture_logs() as lines:
        run(story)
    assert [(line["event"], line["job_id"]) for line in lines] == [("delivery.accepted", "job_demo")]


def test_a_defect_in_the_answering_is_answered_500(settings: Settings) -> None:
    """A write that fails is a defect of ours to be told of; the client is told to send again."""

    async def story() -> None:
        async with serving(settings) as receiver:
            transport = receiver.connect()
            transport.failure = ZeroDivisionError()
            await receiver.send(transport, request(body_of()))
            await receiver.answered(1)
            assert statuses(transport) == [500]
            assert b'"internal_error"' in transport.written
            assert rests(transport)

    with capture_logs() as lines:
        run(story)
    assert [line["event"] for line in lines] == ["delivery.accepted", "delivery.failed"]


def test_a_client_that_hangs_up_before_its_claim_fails_is_answered_nothing(settings: Settings) -> None:
    """The refusal is told of and counted, and not written."""

    async def story() -> None:
        async with serving(settings, StoredClaims(lambda _events: StoreUnavailableError("away"))) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, request(body_of()))
            await receiver.claiming()
            transport.lose(None)
            receiver.claims.gate.set()
            await receiver.noted(1)
            await asyncio.gather(*receiver.tasks)
            assert transport.written == b""

    with capture_logs() as lines:
        run(story)
    assert [(line["event"], line["code"]) for line in lines] == [("delivery.refused", "claim_not_stored")]


@pytest.mark.parametrize("count", [1, 3])
def test_a_shutdown_waits_for_the_claims_of_a_connection(settings: Settings, count: int) -> None:
    """The last answer says that the connection is closed, and then it is."""

    async def story() -> None:
        async with serving(settings) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, deliveries(count))
            await receiver.claiming()
            transport.protocol.shutdown()
            assert not transport.is_closing()
            receiver.claims.gate.set()
            await receiver.until(lambda: transport.lost)
            kept = (ACCEPTED + b"\r\n") * (count - 1)
            assert transport.written == kept + ACCEPTED + b"connection: close\r\n\r\n"
            assert receiver.claims.deliveries.total() == count
            assert receiver.tasks.made == 0

    run(story)


def test_a_late_claim_is_answered_once(make_settings: MakeSettings) -> None:
    """After a 503 at the deadline the claim, once it is durable, is neither answered nor counted again."""

    async def story() -> None:
        async with serving(make_settings(webhook_timeout_seconds=0.05)) as receiver:
            receiver.claims.gate.clear()
            transport = receiver.connect()
            await receiver.send(transport, request(body_of("job-late")))
            await receiver.answered(1)
            receiver.claims.gate.set()
            assert await asyncio.to_thread(receiver.claims.stored.acquire, timeout=20)
            await receiver.send(transport, request(body_of("job-next")))
            await receiver.answered(2)
            assert statuses(transport) == [503, 204]
            assert dict(receiver.claims.deliveries) == {"job-late": 1, "job-next": 1}
            shown = receiver.metrics.render(Gauges())
            assert b'sume_deliveries_total{code="accepted"} 1.0' in shown
            assert b'sume_deliveries_total{code="claim_not_stored"} 1.0' in shown
            assert receiver.tally.noted == 2

    run(story)


class ClaimsForgotten(Journal):
    """Fails to note a claim."""

    def claimed(self, *_: object, **__: object) -> None:
        """Fail."""
        raise ZeroDivisionError


class AnswersForgotten(Journal):
    """Fails to count an answer."""

    def accepted(self, code: str) -> None:
        """Fail."""
        raise ZeroDivisionError(code)


class RefusalsForgotten(Journal):
    """Fails to note a refusal."""

    def refused(self, error: DeliveryError, headers: Headers, *, started: float) -> None:
        """Fail."""
        raise ZeroDivisionError(f"{error} {headers} {started}")


class SecretsForgotten(Journal):
    """Fails to note which secrets signed."""

    def signed(self, tags: list[str]) -> None:
        """Fail."""
        raise ZeroDivisionError(tags)


@pytest.mark.parametrize("journal", [SecretsForgotten, ClaimsForgotten, AnswersForgotten, RefusalsForgotten])
def test_a_defect_in_the_journal_is_answered_500(settings: Settings, journal: type[Journal]) -> None:
    """The client is told to send again and is kept; the one behind it is answered too."""
    problem = StoreUnavailableError("away") if journal is RefusalsForgotten else None

    async def story() -> None:
        async with serving(settings, StoredClaims(lambda _events: problem), journal=journal) as receiver:
            transport = receiver.connect()
            await receiver.send(transport, deliveries(2))
            await receiver.answered(2)
            assert statuses(transport) == [500, 500]
            assert transport.written.count(b'"internal_error"') == 2
            assert rests(transport)
            assert b'sume_deliveries_total{code="internal_error"} 2.0' in receiver.metrics.render(Gauges())

    with capture_logs() as lines:
        run(story)
    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["delivery.failed"] * 2


class AllForgotten(SecretsForgotten):
    """Fails to note even that."""

    def failed(self, error: Exception, *, started: float) -> None:
        """Fail."""
        raise ZeroDivisionError(f"{error} {started}")


def test_a_defect_that_cannot_even_be_told_is_answered_500(settings: Settings) -> None:
    """Whatever fails, no client waits for ever."""

    async def story() -> None:
        async with serving(settings, journal=AllForgotten) as receiver:
            transport = receiver.connect()
            await receiver.send(transport, request(body_of("job-first")))
            await receiver.answered(1)
            assert statuses(transport) == [500]
            assert rests(transport)

    with capture_logs() as lines:
        run(story)
    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["claim.unanswered"]
