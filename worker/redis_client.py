"""The worker's own Redis client."""

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from shared.config import Settings

SOCKET_TIMEOUT_SECONDS = 2


def connect(settings: Settings) -> Redis:
    """Return a new client, never the enqueuer's: waiting and repeating are the worker's loop's affair."""
    if settings.redis_url is None:
        raise ValueError("load the settings with REDIS_URL needed")
    return Redis.from_url(
        settings.redis_url.get_secret_value(),
        socket_timeout=SOCKET_TIMEOUT_SECONDS,
        socket_connect_timeout=SOCKET_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 1, (RedisConnectionError,)),
    )
