"""A distributed lock with a lease (5 s, renewed every second) for all who share a store."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from function.errors import Busy
from function.state import Store

LEASE_SECONDS = 5.0  # a lease ends so long after its holder died
RENEW_SECONDS = 1.0
WAIT_SECONDS = 20.0  # for another's lease; Telegram waits 60 s for a webhook's answer
POLL_SECONDS = 0.02


class Leases:
    """The leases that this process holds. May be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: set[str] = set()
        self._is_renewing = False

    @contextmanager
    def acquire(self, name: str) -> Iterator[None]:
        """Hold the lease of a name once it is free. Raises Busy if that takes too long.

        A holder that stands still for longer than a lease has lost it.
        """
        key = f"lease:{name}"
        started = renewed = time.monotonic()
        seen = 0
        while (count := self._store.count(key, LEASE_SECONDS)) > 1:
            now = time.monotonic()
            if now > started + WAIT_SECONDS:
                raise Busy("leased")
            # Each look counts one more, and the holder sets it back: else nobody holds it, and the
            # store has lost when it ends.
            renewed, seen = (now if count < seen else renewed), count
            if now > renewed + 2 * LEASE_SECONDS:
                self._store.set(key, "", 0)
            time.sleep(POLL_SECONDS)
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
                    threading.Thread(target=self._renew, name="leases", daemon=True).start()
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
