"""What happens, told once: to the log, and to whoever counts (see `metrics`).

An event has a name and fields. Every event and log line of a request carries what was bound to the
request: its id, the update's, the user's pseudonym. No program, output or user id is ever told.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from sandbox import Outcome

Listener = Callable[[str, int, Mapping[str, Any]], None]
listeners: dict[str, Listener] = {}  # the log and the metrics, by name

_LONGEST_KEY = 64  # of BLAKE2b
_process_key = secrets.token_bytes(16)
_bound: ContextVar[Mapping[str, Any]] = ContextVar("bound", default={})  # noqa: B039  never changed


def emit(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Tell all listeners; the log leaves out what is below INFO."""
    for listener in listeners.values():
        listener(event, level, fields)


def begin(**fields: Any) -> None:
    """Bind fields to all that this thread does from now on, instead of what was bound before."""
    _bound.set(fields)


def bind(**fields: Any) -> None:
    """Bind more fields to what this thread works on."""
    _bound.set({**_bound.get(), **fields})


def bound() -> Mapping[str, Any]:
    """Return the fields that are bound now."""
    return _bound.get()


def program(outcome: Outcome, user: int, seconds: float, token: str = "") -> None:  # nosec B107
    """Tell how a user's program ended; `seconds` are from the request to the answer."""
    rule: dict[str, Any] = {"rule": outcome.violations[0].rule} if outcome.violations else {}
    emit(
        "program",
        outcome=outcome.kind,
        **rule,
        user=pseudonym(user, token),
        ms=round(seconds * 1000, 1),
        program_ms=round(outcome.wall_seconds * 1000, 1),
        cpu_ms=round(outcome.cpu_seconds * 1000, 1),
        max_rss_kib=outcome.max_rss_kib,
    )


@lru_cache(64)  # asked for twice in a request
def pseudonym(user: int, token: str) -> str:
    """Return the name that a user has in the log: a hash under the token, else this process's key.

    tools/pseudonym computes it from a user's id.
    """
    key = token.encode()[-_LONGEST_KEY:] or _process_key
    return hashlib.blake2b(str(user).encode(), key=key, digest_size=6).hexdigest()
