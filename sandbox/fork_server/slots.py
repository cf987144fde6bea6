"""How many programs run at once, and how long the others wait."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """A fixed number of slots, for the zygotes of one policy together."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = threading.BoundedSemaphore(count)
        self._lock = threading.Lock()
        self._waiting = 0
        self._pace = 0.0  # seconds from one slot's release to the next, while all are taken

    @contextmanager
    def slot(self, timeout: float) -> Iterator[bool]:
        """Hold a slot; the value is whether there is one within `timeout` seconds.

        There is none at once if those that wait already will, by the time that programs took
        lately, need longer.
        """
        with self._lock:
            is_hopeless = self._waiting * self._pace > timeout
            self._waiting += not is_hopeless
        if is_hopeless:
            yield False
            return
        has_slot = self._free.acquire(timeout=timeout)
        with self._lock:
            self._waiting -= 1
        if not has_slot:
            yield False
            return
        started = time.monotonic()
        try:
            yield True
        finally:
            seconds = time.monotonic() - started
            with self._lock:
                self._pace += (seconds / self._count - self._pace) / 8
            self._free.release()
