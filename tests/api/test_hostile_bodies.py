"""Bodies of every hostile kind through the whole receiver: claimed byte for byte, or in quarantine byte for byte."""

import asyncio
import random
from itertools import product

import pytest

from shared.config import Settings
from tests.api.harness import body_of, call, deliver, receiving, run, signed
from tests.api.test_deliveries import rows
from tests.conftest import MakeSettings
from tests.sume.test_payload import BOM, GOOD, wrapping

NOT_UNDERSTOOD: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "array": b"[]",
    "number": b"17",
    "two documents": GOOD + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-32": GOOD.decode().encode("utf-32"),
    "bad UTF-8": GOOD.replace(b"demo", b"\xc3("),
    "surrogate in UTF-8": GOOD.replace(b"demo", b"\xed\xa0\x80"),
    "raw NUL": GOOD.replace(b"demo", b"de\x00mo"),
    "two BOMs": BOM + BOM + GOOD,
    "NaN": wrapping("NaN"),
    "5000 digits": wrapping("1" * 5000),
    "deep arrays": wrapping("[" * 20_000 + "]" * 20_000),
    "deep objects": wrapping('{"a":' * 20_000 + "1" + "}" * 20_000),
    "only opened": b"[" * 900_000,
    "gzip without its header": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x00\x00",
    "job_id twice": b'{"event":"job.completed","job_id":"a","job_id":"b"}',
    "no job_id": b'{"event":"job.completed"}',
    "unknown event": b'{"event":"job.exploded","job_id":"a"}',
}
CLAIMED: dict[str, bytes] = {
    "BOM": BOM + GOOD,
    "escaped NUL": wrapping('"\\u0000"'),
    "lone surrogates": wrapping('"\\ud800 \\udfff"'),
    "beyond 2^53": wrapping("9007199254740993"),
    "400 digits": wrapping("9" * 400),
    "1e400": wrapping("1e400"),
    "duplicate keys": wrapping('1,"x":2,"event":"job.completed"'),
    "500 deep": wrapping("[" * 500 + "]" * 500),
}


@pytest.fixture
def settings(make_settings: MakeSettings, database_url: str, redis_url: str) -> Settings:
    """Settings with both servers."""
    return make_settings(database_url=database_url, redis_url=redis_url)


def test_what_is_not_understood_is_kept_once_and_claims_nothing(settings: Settings) -> None:
    """Every body twice: answered alike, one entry each with its bytes and count, no job, and the receiver lives on."""

    async def story() -> None:
        async with receiving(settings) as app:
            for name, body in NOT_UNDERSTOOD.items():
                statuses = [(await deliver(app, body)).status for _ in range(2)]
                assert statuses in ([400, 400], [204, 204]), name
            assert (await deliver(app, GOOD)).status == 204

    run(story)
    kept = rows(settings, "SELECT body, count FROM sume_quarantine")
    assert sorted(kept) == sorted((body, 2) for body in NOT_UNDERSTOOD.values())
    assert rows(settings, "SELECT job_id FROM sume_jobs") == [("job_demo",)]


@pytest.mark.parametrize("body", CLAIMED.values(), ids=CLAIMED.keys())
def test_odd_but_real_json_is_claimed_byte_for_byte(body: bytes, settings: Settings) -> None:
    """What JSON allows is a claim, whichever bytes it is made of, also when they come one at a time."""

    async def story() -> None:
        async with receiving(settings) as app:
            pieces = [body[place : place + 1] for place in range(len(body))]
            assert (await call(app, headers=signed(body), chunks=pieces)).status == 204

    run(story)
    assert [text.encode() for (text,) in rows(settings, "SELECT payload FROM sume_jobs")] == [body]
    assert rows(settings, "SELECT count(*) FROM sume_quarantine") == [(0,)]


def test_any_two_events_at_once_are_one_claim_and_a_visible_conflict(settings: Settings) -> None:
    """Every pair in both orders, in one group commit or two: one is kept whole, the other counted and marked."""
    names = ("job.completed", "job.failed", "job.canceled")
    pairs = {f"{a[4:]}-{b[4:]}": (a, b) for a, b in product(names, names)}

    async def story() -> None:
        async with receiving(settings) as app:
            deliveries = [deliver(app, body_of(job, event)) for job, pair in pairs.items() for event in pair]
            assert {answer.status for answer in await asyncio.gather(*deliveries)} == {204}

    run(story)
    found = {
        job: (event, other, count, payload)
        for job, event, other, count, payload in rows(
            settings, "SELECT job_id, event, conflict_with, deliveries, payload FROM sume_jobs"
        )
    }
    assert set(found) == set(pairs)
    for job, pair in pairs.items():
        event, other, count, payload = found[job]
        assert (event, other) in {pair, pair[::-1]} if pair[0] != pair[1] else (event, other) == (pair[0], None)
        assert (count, payload) == (2, body_of(job, event).decode())


def test_clients_that_leave_at_random_take_nothing_from_the_others(settings: Settings) -> None:
    """Of two thousand, half leave in mid-body or while they wait; each that is answered has its own job stored."""
    chance = random.Random(11)
    answered: list[str] = []

    async def story() -> None:
        async with receiving(settings) as app:

            async def client(number: int) -> None:
                job_id = f"job_{number}"
                body = body_of(job_id, mine=number)
                half = number % 4 == 0
                chunks = [body[:20]] if half else [body]
                task = asyncio.create_task(call(app, headers=signed(body), chunks=chunks, complete=not half))
                if number % 2 == 0:
                    for _ in range(chance.randrange(30)):
                        await asyncio.sleep(0)
                    task.cancel()
                try:
                    if (await task).status == 204:
                        answered.append(job_id)
                except asyncio.CancelledError:
                    pass

            await asyncio.gather(*(client(number) for number in range(2000)))

    run(story)
    stored = dict(rows(settings, "SELECT job_id, payload FROM sume_jobs"))
    assert len(answered) >= 1000
    assert set(answered) <= set(stored)
    assert all(payload == body_of(job, mine=int(job[4:])).decode() for job, payload in stored.items())
    assert not any(int(job[4:]) % 4 == 0 for job in stored), "half a body is no delivery"
