"""What the bot remembers, on a Valkey or Redis server that replicas share."""

from collections.abc import Callable
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from function.state.store import StoreLost

SERVER_SECONDS = 0.5  # for each step of talking to the server
_PREFIX = "calcubot:"


class Server:
    """A store on a Valkey or Redis server. Its methods raise StoreLost.

    How much it keeps is bounded by the times to live, and by the server's own `maxmemory`.
    """

    kind = "server"

    def __init__(self, address: str) -> None:
        self._client = redis.Redis.from_url(
            address.replace("valkey", "redis", 1) if address.startswith("valkey") else address,
            decode_responses=True,
            socket_timeout=SERVER_SECONDS,
            socket_connect_timeout=SERVER_SECONDS,
            retry=Retry(NoBackoff(), 1),  # at once: a pooled connection may have been closed
        )

    def get(self, key: str) -> str | None:
        """See Store."""
        return cast("str | None", self._do(lambda: self._client.get(_PREFIX + key)))

    def set(self, key: str, value: str, seconds: float) -> None:
        """See Store."""
        if value:
            self._do(lambda: self._client.set(_PREFIX + key, value, px=_milliseconds(seconds)))
        else:
            self._do(lambda: self._client.delete(_PREFIX + key))

    def count(self, key: str, seconds: float) -> int:
        """See Store."""
        transaction = self._client.pipeline(transaction=True)
        transaction.set(_PREFIX + key, 0, px=_milliseconds(seconds), nx=True)
        transaction.incr(_PREFIX + key)
        return int(self._do(transaction.execute)[1])

    def close(self) -> None:
        """See Store."""
        self._client.close()

    def _do(self, command: Callable[[], Any]) -> Any:
        try:
            return command()
        except (redis.RedisError, OSError) as error:
            raise StoreLost(f"{type(error).__name__}: {error}") from None


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))
