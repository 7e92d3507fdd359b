"""The queue as the receiver's event loop fills it, without a thread."""

import asyncio
import math
from collections.abc import Sequence

import hiredis
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from shared.claims.records import Message
from shared.config import Settings
from shared.queue.connection import SOCKET_TIMEOUT_SECONDS, address_of, connect, translated
from shared.queue.messages import rq_queue, writing_for


class LoopQueue:
    """One connection, made when it is first needed; belongs to one event loop and one task.

    A thread would share the interpreter with the loop at every turn: without it a receiver takes a seventh more
    deliveries a second.
    """

    def __init__(self, settings: Settings) -> None:
        self._url = address_of(settings)
        with connect(settings) as client:  # connects to nothing: RQ asks for a client where it only names keys
            self._writing = writing_for(settings, rq_queue(settings, client))
        self._connection: AbstractConnection | None = None

    async def send(self, messages: Sequence[Message]) -> None:
        """Send the messages, all or none, in one round trip as `Queue.enqueue_many` does.

        Raises QueueUnavailableError in about a second; whether they were sent may be unknown then.
        """
        # hiredis itself packs a command in 2 µs, where redis-py's own asyncio connection takes 14.
        transaction = [("MULTI",), *self._writing.commands(messages), ("EXEC",)]
        commands = [hiredis.pack_command(command) for command in transaction]  # type: ignore[arg-type] # typed for tuples of one
        with translated():
            used, connection = self._connection is not None, self._connection or self._make_connection()
            self._connection = connection
            try:
                await exchange(connection, commands)
            except (RedisConnectionError, OSError):
                if not used:
                    raise
                await exchange(connection, commands)  # once more: Redis may have closed an idle connection

    def _make_connection(self) -> AbstractConnection:
        pool: ConnectionPool = ConnectionPool.from_url(
            self._url,
            socket_timeout=None,  # `exchange` bounds it; redis-py would swallow a cancellation while it sends
            socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call] # untyped there
        return connection

    async def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with translated():
                await connection.disconnect(nowait=True)


async def exchange(connection: AbstractConnection, transaction: Sequence[bytes]) -> None:
    """Send a packed transaction and read every answer; the connection is closed when any of it fails."""
    try:
        async with asyncio.timeout(2 * SOCKET_TIMEOUT_SECONDS):
            await connection.send_packed_command(b"".join(transaction))
            for _ in transaction:
                answer = await connection.read_response(timeout=math.inf)  # the time limit above is for all of them
        raise_first(answer)  # that of EXEC
    except TimeoutError:
        await connection.disconnect(nowait=True)
        raise RedisTimeoutError("Redis did not answer in time") from None
    except BaseException:
        await connection.disconnect(nowait=True)
        raise


def raise_first(answers: Sequence[object]) -> None:
    """Raise the first error among the answers of a transaction."""
    for answer in answers:
        if isinstance(answer, RedisError):
            raise answer
