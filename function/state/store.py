"""What the bot remembers for a while: preferences, answers given, counts for rate limits.

In memory, in a file (SQLite), or on a Valkey or Redis server that replicas share. A file or server
that is lost costs no answer: the store goes on in memory, says so in its status, and returns by
itself, with what was set meanwhile.
"""

import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from function.state.server import Server

log = logging.getLogger(__name__)

MEMORY_BYTES = 32 << 20
FILE_PAGES = 16384  # of 4096 bytes
RETRY_SECONDS = 2.0  # from a loss to the next try
SLACK_SECONDS = 10.0  # by which clocks are corrected, and read before the turn to write comes

T = TypeVar("T")


class Store(Protocol):
    """Texts by key, each for a time; bounded, and safe to use from many threads.

    No method raises. When room runs out, what would expire first goes first.
    """

    def get(self, key: str) -> str | None:
        """Return the value of a key that was set and has not expired, or None."""

    def set(self, key: str, value: str, seconds: float) -> None:
        """Keep a value for that many seconds; it replaces an earlier one, and "" removes it."""

    def count(self, key: str, seconds: float) -> int:
        """Count one more and return how many there are, the first being that long ago at most.

        Atomic among all who share the store: to the first one alone it returns 1.
        """

    def status(self) -> dict[str, str]:
        """Return `kind` (memory, file, server), `state` (ok, degraded) and the `error` if any."""

    def close(self) -> None:
        """Let go of files and connections; the store is not used afterwards."""


class StoreLost(Exception):
    """The file or the server does not answer as it should."""


class Memory:
    """A store within this process."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> str | None:
        """See Store."""
        with self._lock:
            return self._get(key)

    def set(self, key: str, value: str, seconds: float) -> None:
        """See Store; here what was set first goes first."""
        with self._lock:
            self._remove(key)
            if value:
                self._add(key, value, time.monotonic() + seconds)

    def count(self, key: str, seconds: float) -> int:
        """See Store."""
        with self._lock:
            counted = int(self._get(key) or 0) + 1
            expires = self._entries[key][1] if counted > 1 else time.monotonic() + seconds
            self._remove(key)
            self._add(key, str(counted), expires)
            return counted

    def status(self) -> dict[str, str]:
        """See Store."""
        return {"kind": "memory", "state": "ok"}

    def close(self) -> None:
        """See Store."""

    def _get(self, key: str) -> str | None:
        value, expires = self._entries.get(key, (None, 0.0))
        if expires > time.monotonic():
            return value
        self._remove(key)
        return None

    def _add(self, key: str, value: str, expires: float) -> None:
        self._entries[key] = value, expires
        self._bytes += _size(key, value)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: str) -> None:
        value, _ = self._entries.pop(key, (None, 0))
        if value is not None:
            self._bytes -= _size(key, value)


def _size(key: str, value: str) -> int:
    return 200 + len(key) + 4 * len(value)  # about what CPython needs, at most


class File:
    """A store in an SQLite file, whose folder must exist. Its methods raise StoreLost."""

    kind = "file"

    def __init__(self, path: Path, max_pages: int = FILE_PAGES) -> None:
        self._path = path
        self._max_pages = max_pages
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        """See Store."""
        query = "SELECT value FROM entries WHERE key = ? AND expires > ?"
        rows = self._do(query, key, time.time())
        return cast("str", rows[0][0]) if rows else None

    def set(self, key: str, value: str, seconds: float) -> None:
        """See Store."""
        if value:
            insert = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)"
            self._do(insert, key, value, time.time() + seconds)
        else:
            self._do("DELETE FROM entries WHERE key = ?", key)

    def count(self, key: str, seconds: float) -> int:
        """See Store."""
        now = time.time()
        rows = self._do(
            "INSERT INTO entries VALUES (?, '1', ?) ON CONFLICT (key) DO UPDATE SET"
            # What would expire well after one set now was set before the clock was set back.
            " value = CASE WHEN expires > ? AND expires <= excluded.expires + ? THEN value + 1"
            " ELSE 1 END,"
            " expires = CASE WHEN expires > ? AND expires <= excluded.expires + ? THEN expires"
            " ELSE excluded.expires END"
            " RETURNING value",
            *(key, now + seconds, now, SLACK_SECONDS, now, SLACK_SECONDS),
        )
        return int(rows[0][0])

    def close(self) -> None:
        """See Store."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    def _do(self, statement: str, *values: str | float) -> list[Any]:
        try:
            with self._lock:
                return self._execute(statement, values)
        except (sqlite3.Error, OSError) as error:
            self.close()  # another try begins anew: the file may be a new one
            raise StoreLost(f"{error} ({self._path})") from None

    def _execute(self, statement: str, values: tuple[str | float, ...]) -> list[Any]:
        if self._connection is None:
            self._connection = self._open()
        try:
            with self._connection:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
        # Full by our own bound, or the disk is, in which case this fails as well.
        with self._connection:
            self._connection.execute(
                "DELETE FROM entries WHERE key IN (SELECT key FROM entries ORDER BY expires"
                " LIMIT (SELECT count(*) / 4 + 1 FROM entries))"
            )
            return self._connection.execute(statement, values).fetchall()

    def _open(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)  # a program's uid must not read it
        connection = sqlite3.connect(self._path, timeout=1, check_same_thread=False)
        try:
            connection.executescript(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                f"PRAGMA max_page_count = {self._max_pages};"
                "CREATE TABLE IF NOT EXISTS entries"
                " (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires REAL NOT NULL);"
                "CREATE INDEX IF NOT EXISTS by_expiry ON entries (expires);"
            )
            with connection:
                connection.execute("DELETE FROM entries WHERE expires <= ?", (time.time(),))
        except sqlite3.Error:
            connection.close()
            raise
        return connection


class Lasting:
    """A file or a server with memory to fall back on: what a caller uses."""

    def __init__(self, primary: "File | Server", retry_seconds: float = RETRY_SECONDS) -> None:
        self._primary = primary
        self._memory = Memory()  # has a copy of all that is set here
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._error = ""
        self._retry_at = 0.0
        self._unsaved: dict[str, float] = {}  # keys set since the loss, and when they expire

    def get(self, key: str) -> str | None:
        """See Store."""
        return self._try(lambda: self._primary.get(key), lambda: self._memory.get(key))

    def set(self, key: str, value: str, seconds: float) -> None:
        """See Store."""
        self._memory.set(key, value, seconds)
        self._try(
            lambda: self._primary.set(key, value, seconds),
            lambda: self._note_unsaved(key, seconds),
        )

    def count(self, key: str, seconds: float) -> int:
        """See Store."""
        return self._try(
            lambda: self._primary.count(key, seconds), lambda: self._memory.count(key, seconds)
        )

    def status(self) -> dict[str, str]:
        """See Store. Tries the file or server if that is due."""
        self.get("status")
        if self._error:
            return {"kind": self._primary.kind, "state": "degraded", "error": self._error}
        return {"kind": self._primary.kind, "state": "ok"}

    def close(self) -> None:
        """See Store."""
        self._primary.close()

    def _try(self, lasting: Callable[[], T], local: Callable[[], T]) -> T:
        """Do it in the file or server unless that is lost; one caller at a time finds out."""
        if not self._is_due():
            return local()
        try:
            if self._error:
                self._save()
            result = lasting()
        except StoreLost as error:
            if not self._error:
                log.warning("store lost, going on in memory: %s", error)
            self._error = str(error)
            self._retry_at = time.monotonic() + self._retry_seconds
            return local()
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
        """Bring to the file or server what was set since the loss."""
        for key, expires in list(self._unsaved.items()):
            seconds = expires - time.monotonic()
            if seconds > 0:
                self._primary.set(key, self._memory.get(key) or "", seconds)
            self._unsaved.pop(key, None)

    def _note_unsaved(self, key: str, seconds: float) -> None:
        if len(self._unsaved) < MEMORY_BYTES // 1000:
            self._unsaved[key] = time.monotonic() + seconds


def open_store(address: str) -> Store:
    """Return the store that is meant: "" is memory, `redis://HOST:PORT` a server, else a file.

    Raises ValueError for an address that can never work. A file that cannot be written or a server
    that does not answer is no error: see Lasting.
    """
    if not address:
        return Memory()
    scheme, separator, _ = address.partition("://")
    if not separator:
        return Lasting(File(Path(address)))
    if scheme not in ("redis", "rediss", "valkey", "valkeys", "unix"):
        raise ValueError(f"{scheme}://... is no store: write redis://HOST:PORT or a file's path")
    from function.state.server import Server  # its client is large, and few need it

    return Lasting(Server(address))
