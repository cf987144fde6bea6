"""What the bot remembers for a while: preferences, answers given, counts for rate limits, leases.

In memory, in a file (SQLite), or on a Valkey or Redis server that replicas share. A file or server
that is lost costs no answer: see `fallback`.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from function.state.fallback import Fallback
from function.state.file import File
from function.state.memory import Memory
from function.state.store import Store, StoreLost, StoreMisconfigured

if TYPE_CHECKING:
    from function.state.redis import Redis

__all__ = ["Store", "open_store"]


def open_store(address: str) -> Store:
    """Return the store that STORE names: "" is memory, `redis://HOST:PORT` a server, else a file.

    Raises ValueError with the cure for an address that cannot work until somebody changes it. A
    server that does not answer, or a full disk, is no error: the store begins degraded.
    """
    if not address:
        return Memory()
    primary = _primary(address)
    try:
        primary.get("status")
    except StoreMisconfigured as error:
        raise ValueError(f"STORE cannot be used: {error}") from None
    except StoreLost:
        pass
    return Fallback(primary)


def _primary(address: str) -> "File | Redis":
    scheme, separator, _ = address.partition("://")
    path = Path(address)
    if not separator and re.fullmatch(r"[\w.-]+:\d+", path.name):
        raise ValueError(f"STORE is {address}: write redis://{path.name} for a server")
    if not separator:
        return File(path)
    if scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
        raise ValueError(f"STORE: {scheme}://... is no store: write redis://HOST:PORT or a path")
    from function.state.redis import Redis  # its client is large, and few need it

    return Redis(address)
