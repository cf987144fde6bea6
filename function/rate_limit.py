"""No sender starves the others: a few programs at once, and so many a minute while others wait."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from function.state import Store
from sandbox import Limits

MINUTE = 60.0


class TooMany(Exception):
    """A sender has had enough for now; the text is one sentence that says so and until when."""


class Senders:
    """Counts who runs how much. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._present: Counter[int] = Counter()  # programs that run or wait, by sender
        self._running: Counter[int] = Counter()

    @contextmanager
    def turn(self, sender: int, limits: Limits, patience: float) -> Iterator[None]:
        """Hold one of a sender's places, for which `patience` seconds are waited. Raises TooMany.

        Who is alone may start as many a minute as there is room for.
        """
        has_place = False
        with self._changed:
            self._present[sender] += 1
            is_alone = len(self._present) == 1
        try:
            started = self._store.count(f"started:{sender}", MINUTE)
            if not is_alone and started > limits.sender_per_minute:
                raise TooMany("You sent many programs and others wait. Try again in a minute.")
            with self._changed:
                has_place = self._changed.wait_for(
                    lambda: self._running[sender] < limits.sender_concurrent, patience
                )
                if not has_place:
                    raise TooMany(
                        "Your other programs are still running, and at most "
                        f"{limits.sender_concurrent} may at once. Try again in a moment."
                    )
                self._running[sender] += 1
            yield
        finally:
            with self._changed:
                _decrement(self._present, sender)
                if has_place:
                    _decrement(self._running, sender)
                    self._changed.notify_all()


def _decrement(counts: Counter[int], sender: int) -> None:
    counts[sender] -= 1
    if not counts[sender]:
        del counts[sender]
