"""The sign of life that a worker keeps in the store, busy or idle."""

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from shared.claims.watch import WatchStore
from shared.errors import StoreUnavailableError
from shared.logs import get_logger

BEAT_EVERY = timedelta(seconds=15)


@contextmanager
def beating(store: WatchStore, *, name: str, every: timedelta = BEAT_EVERY) -> Iterator[None]:
    """Note every so often that this process lives, from a thread of its own, until the end of the block.

    A database that is away is tried again the next time: a missed beat harms nothing.
    """
    over = threading.Event()

    def beat() -> None:
        while not over.is_set():
            try:
                store.beat("worker", name)
            except StoreUnavailableError as error:
                get_logger().debug("beat.missed", error=str(error))
            over.wait(every.total_seconds())

    threading.Thread(target=contextvars.copy_context().run, args=(beat,), name="beat", daemon=True).start()
    try:
        yield
    finally:
        over.set()
