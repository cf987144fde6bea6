"""A store that outlasts its file or server: it goes on in memory, and returns by itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from function.state.file import File
from function.state.memory import MEMORY_BYTES, Memory
from function.state.store import StoreLost

if TYPE_CHECKING:
    from function.state.redis import Redis

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0  # from a loss to the next try

T = TypeVar("T")


class Fallback:
    """A primary store with memory to fall back on; see Store.

    While the primary is lost, `status` says so. What was set meanwhile is saved when it is back.
    """

    def __init__(self, primary: File | Redis, retry_seconds: float = RETRY_SECONDS) -> None:
        self._primary = primary
        self._memory = Memory()  # has a copy of all that is set here
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._error = ""
        self._retry_at = 0.0
        self._unsaved: dict[str, float] = {}  # keys set since the loss, and when they expire

    def get(self, key: str) -> str | None:
        return self._try(lambda store: store.get(key))

    def set(self, key: str, value: str, seconds: float) -> None:
        self._memory.set(key, value, seconds)
        self._try(lambda store: store.set(key, value, seconds))
        if self._error and len(self._unsaved) < MEMORY_BYTES // 1000:
            self._unsaved[key] = time.monotonic() + seconds

    def count(self, key: str, seconds: float) -> int:
        return self._try(lambda store: store.count(key, seconds))

    def status(self) -> dict[str, str]:
        self.get("status")  # tries the primary if that is due
        if self._error:
            return {"kind": self._primary.kind, "state": "degraded", "error": self._error}
        return {"kind": self._primary.kind, "state": "ok"}

    def close(self) -> None:
        self._primary.close()

    def _try(self, ask: Callable[[File | Redis | Memory], T]) -> T:
        """Ask the primary, the memory while it is lost; one caller at a time finds out if it is."""
        if not self._is_due():
            return ask(self._memory)
        try:
            if self._error:
                self._save()
            result = ask(self._primary)
        except StoreLost as error:
            if not self._error:
                log.warning("store lost, going on in memory: %s", error)
            self._error = str(error)
            self._retry_at = time.monotonic() + self._retry_seconds
            return ask(self._memory)
        if self._error:
            log.warning("store is back")
            self._error = ""
        return result

    def _is_due(self) -> bool:
        if not self._error:
            return True
        with self._lock:
            if time.monotonic() < self._retry_at:
                return False
            self._retry_at = time.monotonic() + self._retry_seconds
            return True

    def _save(self) -> None:
        """Set in the primary what was set since the loss."""
        for key, expires in list(self._unsaved.items()):
            seconds = expires - time.monotonic()
            if seconds > 0:
                self._primary.set(key, self._memory.get(key) or "", seconds)
            self._unsaved.pop(key, None)
