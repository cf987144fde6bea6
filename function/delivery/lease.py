"""Claims: among all who share a store, one at a time does a piece of work, as long as it lives."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from function.answers.replies import Reply, say
from function.bot import Busy
from function.state import Store

LEASE_SECONDS = 5.0  # a claim ends so long after its holder died
RENEW_SECONDS = 1.0
WAIT_SECONDS = 20.0  # for another's claim; Telegram waits 60 s for a webhook's answer
LOOK_SECONDS = 0.02


class Claims:
    """What this process works on. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._is_renewing = False

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Hold the claim to a piece of work, when it is free. Raises Busy if that takes too long.

        A holder that stands still for longer than a lease has lost it.
        """
        key = f"claim:{name}"
        deadline = time.monotonic() + WAIT_SECONDS
        while self._store.count(key, LEASE_SECONDS) > 1:
            if time.monotonic() > deadline:
                raise Busy(Reply(say("This is being answered.")), retry_after=2)
            time.sleep(LOOK_SECONDS)
        self._begin(key)
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(key)
            self._store.set(key, "", 0)

    def _begin(self, key: str) -> None:
        with self._lock:
            self._held.add(key)
            if not self._is_renewing:
                with suppress(RuntimeError):  # no thread is left: then for one lease
                    threading.Thread(target=self._renew, name="claims", daemon=True).start()
                    self._is_renewing = True

    def _renew(self) -> None:
        """Renew what is held, until nothing is."""
        while True:
            time.sleep(RENEW_SECONDS)
            with self._lock:  # lest one that has just been released be set again
                for key in self._held:
                    self._store.set(key, "1", LEASE_SECONDS)
                self._is_renewing = bool(self._held)
                if not self._is_renewing:
                    return
