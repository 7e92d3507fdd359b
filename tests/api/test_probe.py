"""A question to a server the receiver stands on, which holds a connection until it is answered."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import pytest

from api.app import create_app
from api.health import Probe
from shared.claims import open_store
from shared.claims.store import Store
from shared.errors import StoreUnavailableError
from tests.api.harness import call, run
from tests.conftest import MakeSettings

AT_ONCE = timedelta(0)


class Question:
    """A check that is answered when the test says so; told as text, `begun` and `answered` in their order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.begun = threading.Semaphore(0)
        self.answer = threading.Event()
        self.problem: Exception | None = None

    def is_asked(self) -> bool:
        """Wait until somebody asks."""
        return self.begun.acquire(timeout=20)

    def __call__(self) -> None:
        """Wait for the answer."""
        self.told.append("begun")
        self.begun.release()
        assert self.answer.wait(20)
        self.told.append("answered")
        if self.problem is not None:
            raise self.problem


async def in_thread(wait: Callable[[], object]) -> None:
    """Wait for what another thread does."""
    assert await asyncio.to_thread(wait)


async def let_all_run() -> None:
    """Give every task that can go on its turn."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_end_waits_for_a_question_that_nobody_waits_for_any_more() -> None:
    """Whoever asked was cancelled; what was asked still holds a connection."""

    async def story() -> None:
        question = Question()
        probe = Probe("database", question)
        asking = asyncio.create_task(probe.ask())
        await in_thread(question.is_asked)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        finishing = asyncio.create_task(probe.finish())
        await let_all_run()
        assert not finishing.done()
        question.answer.set()
        await finishing
        assert question.told == ["begun", "answered"]
        probe.close()

    run(story)


def test_the_end_waits_for_no_answer_longer_than_anybody() -> None:
    """A server that never answers does not hold up the exit."""

    async def story() -> None:
        question = Question()
        probe = Probe("database", question, within=AT_ONCE)
        assert await probe.ask() == "no answer within 0 s"
        await probe.finish()
        question.answer.set()
        probe.close()

    run(story)


def test_one_question_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is not answered, those who ask wait for its answer: no second one takes a thread and a connection."""

    async def story() -> None:
        question = Question()
        question.problem = StoreUnavailableError("refused")
        probe = Probe("database", question, within=AT_ONCE)
        assert await probe.ask() == "no answer within 0 s"
        await in_thread(question.is_asked)
        monkeypatch.setattr(probe, "_fresh_until", 0.0)
        monkeypatch.setattr(probe, "_within", 20.0)
        again = asyncio.create_task(probe.ask())
        await let_all_run()
        question.answer.set()
        assert await again == "refused"
        assert question.told == ["begun", "answered"]
        probe.close()

    run(story)


def test_a_receiver_that_ends_closes_no_store_that_is_being_asked(
    make_settings: MakeSettings, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection given back to a store that is closed would stay open."""
    settings = make_settings(database_url=database_url, redis_url=redis_url)
    question, real, finish = Question(), open_store(settings), Probe.finish

    async def answered_then(probe: Probe) -> None:
        question.answer.set()
        await finish(probe)

    monkeypatch.setattr(Probe, "finish", answered_then)

    class Asked:
        """A store that answers the question whether it works when the test says so."""

        check = staticmethod(question)

        def close(self) -> None:
            """Close the real one."""
            question.told.append("closed")
            real.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    async def story() -> None:
        app = create_app(settings, store=cast("Store", Asked()))
        async with app.router.lifespan_context(app):
            asking = asyncio.create_task(call(app, "GET", "/readyz"))
            await in_thread(question.is_asked)
            asking.cancel()
        question.answer.set()
        with suppress(asyncio.CancelledError):
            await asking

    run(story)
    assert question.told[:3] == ["begun", "answered", "closed"]
