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


def address_of(settings: Settings) -> str:
    """Return where Redis is, with its password; ValueError where the settings were loaded without it."""
    if settings.redis_url is None:
        raise ValueError("load the settings with REDIS_URL needed")
    return settings.redis_url.get_secret_value()


def connect(settings: Settings, *, timeout_seconds: float = SOCKET_TIMEOUT_SECONDS) -> Redis:
    """Return a new client that gives up quickly; one retry, because Redis may have closed an idle connection."""
    return Redis.from_url(
        address_of(settings),
        socket_timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
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
