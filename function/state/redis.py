"""A store on a Valkey or Redis server that replicas share."""

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from function.state.store import StoreLost, StoreMisconfigured

SERVER_SECONDS = 0.5  # for each step of talking to the server
_PREFIX = "calcubot:"
# What a server says of a key that somebody else has written; such a key is deleted.
_FOREIGN = ("WRONGTYPE", "value is not an integer")
_FORM = (
    "write redis://USER:PASSWORD@HOST:PORT/NUMBER (rediss:// with TLS, and ?ssl_ca_certs=FILE for"
    " a CA of your own), with @ and / in a password as %40 and %2F"
)


class Redis:
    """A store on a server; see Store. Its methods raise StoreLost.

    How much it keeps is bounded by the times to live, and by the server's own `maxmemory`.
    """

    kind = "server"

    def __init__(self, address: str) -> None:
        """Raises ValueError for an address or an option in it that is wrong, without its text."""
        url = address.replace("valkey", "redis", 1) if address.startswith("valkey") else address
        try:
            if "@" in address.rpartition(urlsplit(url).netloc)[2]:
                raise ValueError("@ after the host")
            self._client = redis.Redis.from_url(
                url,
                decode_responses=True,
                encoding_errors="replace",
                socket_timeout=SERVER_SECONDS,
                socket_connect_timeout=SERVER_SECONDS,
                retry=Retry(NoBackoff(), 1),  # at once: a pooled connection may have been closed
            )
            self._client.connection_pool.make_connection()  # reads the options; does not connect
        except TypeError as error:
            option = str(error).rpartition(" argument ")[2]
            raise ValueError(f"STORE has an unknown option, {option}: {_FORM}") from None
        except (ValueError, redis.RedisError):
            raise ValueError(f"STORE is no address of a server: {_FORM}") from None

    def get(self, key: str) -> str | None:
        return cast("str | None", self._do(key, lambda: self._client.get(_PREFIX + key)))

    def set(self, key: str, value: str, seconds: float) -> None:
        if value:
            ttl = _milliseconds(seconds)
            self._do(key, lambda: self._client.set(_PREFIX + key, value, px=ttl))
        else:
            self._do(key, lambda: self._client.delete(_PREFIX + key))

    def count(self, key: str, seconds: float) -> int:
        def count() -> int:
            ttl = _milliseconds(seconds)
            transaction = self._client.pipeline(transaction=True)
            transaction.set(_PREFIX + key, 0, px=ttl, nx=True)
            transaction.incr(_PREFIX + key)
            transaction.pttl(_PREFIX + key)
            _, counted, left = transaction.execute()
            if left < 0:  # somebody else has set it, for ever
                self._client.pexpire(_PREFIX + key, ttl)
            return int(counted)

        return int(self._do(key, count))

    def close(self) -> None:
        self._client.close()

    def _do(self, key: str, command: Callable[[], Any]) -> Any:
        try:
            try:
                return command()
            except redis.ResponseError as error:
                if not any(sign in str(error) for sign in _FOREIGN):
                    raise
                self._client.delete(_PREFIX + key)
                return command()
        except (redis.RedisError, OSError) as error:
            reason = f"{type(error).__name__}: {error}"
            is_wrong = (
                isinstance(error, redis.AuthenticationError)
                or "CERTIFICATE" in reason
                or "DB index" in reason
            )
            raise (StoreMisconfigured if is_wrong else StoreLost)(reason) from None


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))
