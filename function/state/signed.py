"""Texts in a shared store that only holders of the bot's token can have written."""

import hashlib
import hmac
import logging

from function.state.memory import Memory
from function.state.store import Store, Texts

log = logging.getLogger(__name__)

_DIGITS = 32
_ROWS = "outbox"  # each as good under another number


def signed(store: Store, token: str) -> Texts:
    """The texts of a store; signed, if others can write to it."""
    return store if isinstance(store, Memory) else Signed(store, token)


class Signed:
    """Reads and writes texts with a signature before them (BLAKE2b under a key from the token).

    Without a token there is no secret, and the signature only tells damage.
    """

    def __init__(self, store: Store, token: str) -> None:
        self._store = store
        key = hmac.digest(token.encode(), b"store", hashlib.sha256)
        self._hash = hashlib.blake2b(key=key, digest_size=_DIGITS // 2)

    def get(self, key: str) -> str | None:
        """Return the text of a key; one that was not signed for that key is deleted."""
        kept = self._store.get(key)
        if kept is None:
            return None
        signature, text = kept[:_DIGITS], kept[_DIGITS:]
        if hmac.compare_digest(signature.encode(errors="replace"), self._sign(key, text)):
            return text
        self._store.set(key, "", 0)
        log.warning("deleted from the store, as it was not signed by this bot: %s", key)
        return None

    def set(self, key: str, value: str, seconds: float) -> None:
        """Keep a text for that many seconds, signed for its key; "" removes it."""
        self._store.set(key, self._sign(key, value).decode() + value if value else "", seconds)

    def _sign(self, key: str, text: str) -> bytes:
        name = _ROWS if key.startswith(f"{_ROWS}:") else key
        signed = self._hash.copy()
        signed.update(f"{name}\n{text}".encode(errors="replace"))
        return signed.hexdigest().encode()
