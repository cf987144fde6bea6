"""How many programs run at once, and how long the others wait."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Slots:
    """A fixed number of slots, for the zygotes of one policy together.

    They are given in the order of arrival. With a semaphore the thread that releases one has the
    next as well, before those that wait wake up: one user could keep all others waiting.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = count
        self._queue: deque[threading.Lock] = deque()  # each is released when it is granted a slot
        self._lock = threading.Lock()
        self._pace = 0.0  # seconds from one slot's release to the next, while all are occupied

    @contextmanager
    def slot(self, timeout: float) -> Iterator[bool]:
        """Hold a slot; the value is whether there is one within `timeout` seconds.

        There is none at once if those that wait already will, by the time that programs took
        lately, need longer.
        """
        if not self._acquire(timeout):
            yield False
            return
        started = time.monotonic()
        try:
            yield True
        finally:
            self._release(time.monotonic() - started)

    def _acquire(self, timeout: float) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            if len(self._queue) * self._pace > timeout:
                return False
            granted = threading.Lock()
            granted.acquire()
            self._queue.append(granted)
        granted.acquire(timeout=timeout)
        with self._lock:
            if granted in self._queue:
                self._queue.remove(granted)
                return False
            return True

    def _release(self, seconds: float) -> None:
        with self._lock:
            self._pace += (seconds / self._count - self._pace) / 8
            if self._queue:
                self._queue.popleft().release()
            else:
                self._free += 1
