"""The network between our processes and the servers: TCP links that can be cut, slowed and frozen one by one."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from shared.sandbox.ports import LOOPBACK, free_port

CHUNK = 65_536


class Link:
    """One listening port and the server behind it; every method may be called from any thread."""

    def __init__(self, network: "Network", upstream: int) -> None:
        self.port = free_port()
        self.upstream = upstream
        self._network = network
        self._delay = 0.0
        self._whole = True
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End every connection, and every new one at once."""
        self._whole = False
        self._network.call(self._abort_all)

    def slow(self, seconds: float) -> None:
        """Hold every answer of the server back for so long."""
        self._delay = seconds

    def heal(self) -> None:
        """Be a plain connection again."""
        self._delay, self._whole = 0.0, True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        if not self._whole:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self.upstream)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        try:
            ways = {
                asyncio.ensure_future(self._carry(reader, far_writer, back=False)),
                asyncio.ensure_future(self._carry(far_reader, writer, back=True)),
            }
            _, open_ones = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for one in open_ones:
                one.cancel()
            await asyncio.gather(*open_ones, return_exceptions=True)
        finally:
            self._writers -= both
            for one_end in both:
                one_end.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if back and self._delay:
                    await asyncio.sleep(self._delay)
                writer.write(data)
                await writer.drain()

    def _abort_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


class Network:
    """The loop that all links share, in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)

    def start(self) -> Self:
        """Run."""
        self._thread.start()
        return self

    def link(self, upstream: int) -> Link:
        """Open a link to a server's port."""
        link = Link(self, upstream)
        opening = asyncio.start_server(link.serve, LOOPBACK, link.port)
        self._servers.append(asyncio.run_coroutine_threadsafe(opening, self._loop).result(10))
        return link

    def call(self, action: Callable[[], None]) -> None:
        """Run something on the loop and wait for it."""
        done = threading.Event()

        def act() -> None:
            action()
            done.set()

        self._loop.call_soon_threadsafe(act)
        done.wait(10)

    def close(self) -> None:
        """End everything."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
