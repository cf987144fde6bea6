"""What the bot remembers for a while: preferences, answers given, counts for rate limits, leases.

In memory, in a file (SQLite), or on a Valkey or Redis server that replicas share. A file or server
that is lost costs no answer: see `fallback`.
"""

import re
from pathlib import Path

from function.state.fallback import Fallback, Primary
from function.state.file import File
from function.state.memory import Memory
from function.state.store import Store, StoreLost, StoreMisconfigured

__all__ = ["Store", "open_store"]


def open_store(address: str) -> Store:
    """Return the store that STORE names: "" is memory, `redis://HOST:PORT` a server, else a file.

    Raises ValueError with the cure for an address that cannot work until somebody changes it. A
    server that does not answer, or a full disk, is no error: the store begins degraded.
    """
    if not address:
        return Memory()
    primary: Primary
    scheme, separator, _ = address.partition("://")
    if separator:
        if scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
            raise ValueError(
                f"STORE: {scheme}://... is no store: write redis://HOST:PORT or a file's path"
            )
        from function.state.redis import Redis  # its client is large, and few need it

        primary = Redis(address)
    elif re.fullmatch(r"[\w.-]+:\d+", Path(address).name):
        raise ValueError(f"STORE is {address}: write redis://{Path(address).name} for a server")
    else:
        primary = File(Path(address))
    try:
        primary.get("status")
    except StoreMisconfigured as error:
        raise ValueError(f"STORE cannot be used: {error}") from None
    except StoreLost:
        pass
    return Fallback(primary)
