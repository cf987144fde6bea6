"""A store within this process."""

import threading
import time
from collections import OrderedDict, defaultdict

from function.state.store import SHORT_TEXT

MEMORY_BYTES = 32 << 20
_ABSENT = "", 0.0, (False, 0.0)


class Memory:
    """A store that ends with the process; see Store."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: dict[str, tuple[str, float, tuple[bool, float]]] = {}
        # Keys by (is short, lifetime): what lives equally long expires in the order it was set in.
        # A dict would be slow to find its first key once many before it were removed.
        self._queues: dict[tuple[bool, float], OrderedDict[str, None]] = defaultdict(OrderedDict)
        self._lock = threading.Lock()

    def get(self, key: str) -> str | None:
        value, expires, _ = self._entries.get(key, _ABSENT)
        return value if expires > time.monotonic() else None

    def set(self, key: str, value: str, seconds: float) -> None:
        with self._lock:
            self._remove(key)
            if value:
                self._add(key, value, seconds)

    def count(self, key: str, seconds: float) -> int:
        with self._lock:
            counted, expires, queue = self._entries.get(key, _ABSENT)
            if expires <= time.monotonic():
                self._remove(key)
                self._add(key, "1", seconds)
                return 1
            number = int(counted) + 1 if counted.isdecimal() else 1
            self._entries[key] = str(number), expires, queue
            return number

    def status(self) -> dict[str, str]:
        return {"kind": "memory", "state": "ok"}

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _add(self, key: str, value: str, seconds: float) -> None:
        now = time.monotonic()
        queue = len(value) <= SHORT_TEXT, seconds
        self._entries[key] = value, now + seconds, queue
        keys = self._queues[queue]
        keys[key] = None
        self._bytes += _size(key, value)
        if self._entries[first := next(iter(keys))][1] <= now:
            self._remove(first)
        while self._bytes > self._max_bytes:
            firsts = {queue: next(iter(keys)) for queue, keys in self._queues.items() if keys}
            expired = (first for first in firsts.values() if self._entries[first][1] <= now)
            self._remove(next(expired, firsts[min(firsts)]))

    def _remove(self, key: str) -> None:
        if key in self._entries:
            value, _, queue = self._entries.pop(key)
            self._bytes -= _size(key, value)
            del self._queues[queue][key]


def _size(key: str, value: str) -> int:
    return 300 + len(key) + 4 * max(len(value), SHORT_TEXT)  # about what CPython needs, at most
