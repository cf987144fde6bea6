"""The interface of a store, and what one that can be lost raises."""

from typing import Protocol


class Texts(Protocol):
    """Texts by key, each for a time. May be used from any thread; no method raises."""

    def get(self, key: str) -> str | None:
        """Return the value of a key that was set and has not expired, or None."""

    def set(self, key: str, value: str, seconds: float) -> None:
        """Keep a value for that many seconds; it replaces an earlier one, and "" removes it."""


class Store(Texts, Protocol):
    """Texts and counts, bounded.

    When room runs out, texts of more than SHORT_TEXT characters (answers) are evicted before
    shorter ones (preferences, counts, leases), and of each those that would expire first: nobody's
    output costs anybody a setting or a limit.
    """

    def count(self, key: str, seconds: float) -> int:
        """Count one more and return how many there are, the first being that long ago at most.

        Atomic among all who share the store: to the first one alone it returns 1.
        """

    def status(self) -> dict[str, str]:
        """Return `kind` (memory, file, server), `state` (ok, degraded) and the `error` if any."""

    def close(self) -> None:
        """Close files and connections; the store is not used afterwards."""


SHORT_TEXT = 16  # characters


class StoreLost(Exception):
    """The file or the server does not answer as it should."""


class StoreMisconfigured(StoreLost):
    """It cannot answer until somebody changes the address, or what stands there."""
