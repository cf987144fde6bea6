"""A store in an SQLite file."""

import errno
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, cast

from function.state.store import SHORT_TEXT, StoreLost, StoreMisconfigured

FILE_PAGES = 16384  # of 4096 bytes
SLACK_SECONDS = 10.0  # by which clocks are corrected, and read before the turn to write comes

_WRONG_PATH = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS}
_WRONG_FILE = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


class File:
    """A store in a file whose folder must exist; see Store. Its methods raise StoreLost."""

    kind = "file"

    def __init__(self, path: Path, max_pages: int = FILE_PAGES) -> None:
        self._path = path
        self._max_pages = max_pages
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        query = "SELECT value FROM entries WHERE key = ? AND expires > ?"
        rows = self._do(query, _encodable(key), time.time())
        return cast("str", rows[0][0]) if rows else None

    def set(self, key: str, value: str, seconds: float) -> None:
        if value:
            insert = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)"
            self._do(insert, _encodable(key), _encodable(value), time.time() + seconds)
        else:
            self._do("DELETE FROM entries WHERE key = ?", _encodable(key))

    def count(self, key: str, seconds: float) -> int:
        now = time.time()
        rows = self._do(
            "INSERT INTO entries VALUES (?, '1', ?) ON CONFLICT (key) DO UPDATE SET"
            # What would expire well after one set now was set before the clock was set back.
            " value = CASE WHEN expires > ? AND expires <= excluded.expires + ?"
            " THEN CAST(value AS INTEGER) % 1000000000 + 1 ELSE 1 END,"
            " expires = CASE WHEN expires > ? AND expires <= excluded.expires + ? THEN expires"
            " ELSE excluded.expires END"
            " RETURNING value",
            *(_encodable(key), now + seconds, now, SLACK_SECONDS, now, SLACK_SECONDS),
        )
        return int(rows[0][0])

    def close(self) -> None:
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
            is_wrong = getattr(error, "errno", None) in _WRONG_PATH or _code(error) in _WRONG_FILE
            lost = StoreMisconfigured if is_wrong else StoreLost
            reason = getattr(error, "strerror", None) or error
            raise lost(f"{self._path}: {reason}") from None

    def _execute(self, statement: str, values: tuple[str | float, ...]) -> list[Any]:
        if self._connection is None:
            self._connection = self._open()
        try:
            with self._connection:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_FULL:
                raise
        # Full by our own bound, or the disk is, in which case this fails as well.
        with self._connection:
            self._connection.execute(
                "DELETE FROM entries WHERE key IN (SELECT key FROM entries ORDER BY"
                " length(value) <= ?, expires LIMIT (SELECT count(*) / 4 + 1 FROM entries))",
                (SHORT_TEXT,),
            )
            return self._connection.execute(statement, values).fetchall()

    def _open(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)  # a program's uid must not read it
        connection = sqlite3.connect(self._path, timeout=1, check_same_thread=False)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
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


def _code(error: Exception) -> int:
    """The primary result code (https://www.sqlite.org/rescode.html); 0 where there is none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _encodable(text: str) -> str:
    """The text without lone surrogates, which SQLite cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
