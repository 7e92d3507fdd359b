"""Connections to Redis that give up quickly, and the translation of its errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.retry import Retry

from shared.config import Settings
from shared.errors import QueueUnavailableError

SOCKET_TIMEOUT_SECONDS = 0.5


def connect(settings: Settings) -> Redis:
    """Return a client that gives up quickly; one retry, because Redis may have closed an idle connection."""
    if settings.redis_url is None:
        raise ValueError("load the settings with REDIS_URL needed")
    return Redis.from_url(
        settings.redis_url.get_secret_value(),
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 1, (RedisConnectionError,)),
    )


@contextmanager
def translated() -> Iterator[None]:
    """Turn any Redis error into ours, without the command, which redis-py repeats in its texts."""
    try:
        yield
    except (RedisError, OSError) as error:
        text = str(error).rpartition("caused error: ")[2]
        raise QueueUnavailableError(f"Redis: {type(error).__name__}: {text[:200]}") from error
