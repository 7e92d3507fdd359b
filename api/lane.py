"""A few threads for blocking calls, so that a slow database blocks neither the event loop nor the exit."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, TypeVar

from shared.errors import StoreUnavailableError

T = TypeVar("T")


class Lane:
    """Daemon threads (a stuck one must not delay the exit) behind a bounded line of calls."""

    def __init__(self, name: str, *, threads: int, capacity: int) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        self._capacity = capacity
        self._open = 0

    def submit(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Have a thread run the call; a future cancelled before its turn is never run.

        Raises StoreUnavailableError when `capacity` calls are open already.
        """
        if self._open >= self._capacity:
            raise StoreUnavailableError("too many calls wait for the database")
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._open += 1
        self._calls.put((call, future))
        return future

    async def run(self, call: Callable[[], T], *, within: timedelta) -> T:
        """Return what the call returns; raises StoreUnavailableError when that takes too long."""
        try:
            async with asyncio.timeout(within.total_seconds()):
                return await self.submit(call)
        except TimeoutError as error:
            raise StoreUnavailableError("the database did not answer in time") from error

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            call, future = item
            result: Any = None
            failure: Exception | None = None
            if not future.cancelled():
                try:
                    result = call()
                except Exception as error:  # noqa: BLE001 - whoever awaits the future gets it
                    failure = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(self._settle, future, result, failure)

    def _settle(self, future: asyncio.Future[Any], result: object, failure: Exception | None) -> None:
        self._open -= 1
        if future.done():
            return
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)

    def close(self) -> None:
        """Let the threads end after the calls that are open; waits for nobody."""
        for _ in self._threads:
            self._calls.put(None)
