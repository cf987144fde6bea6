"""No user starves the others: a few programs at once, and so many a minute while others wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from function.errors import TooMany
from function.state import Store
from sandbox import Limits

MINUTE = 60.0


class RateLimit:
    """Counts which user runs how much. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._present: dict[int, int] = {}  # programs that run or wait, by user
        self._running: dict[int, int] = {}  # no Counter, which deletes in Python

    @contextmanager
    def slot(self, user: int, limits: Limits, timeout: float) -> Iterator[None]:
        """Hold one of a user's slots, waiting `timeout` seconds for it. Raises TooMany.

        A user who is alone may start as many a minute as there is room for.
        """
        started = self._store.count(f"started:{user}", MINUTE)
        with self._changed:
            _increment(self._present, user)
            try:
                if started > limits.sender_per_minute and len(self._present) > 1:
                    raise TooMany("user_rate", int(MINUTE))
                if not self._changed.wait_for(
                    lambda: self._running.get(user, 0) < limits.sender_concurrent, timeout
                ):
                    raise TooMany("user_concurrent")
            except TooMany:
                _decrement(self._present, user)
                raise
            _increment(self._running, user)
        try:
            yield
        finally:
            with self._changed:
                _decrement(self._present, user)
                _decrement(self._running, user)
                if user in self._present:  # nobody else waits for this
                    self._changed.notify_all()


def _increment(counts: dict[int, int], user: int) -> None:
    counts[user] = counts.get(user, 0) + 1


def _decrement(counts: dict[int, int], user: int) -> None:
    counts[user] -= 1
    if not counts[user]:
        del counts[user]
