"""Updates whose answers Telegram did not accept yet: kept in the store, and tried again.

Each chat is tried in its own time, so that none delays another. A replica that shares the store,
or this one after a restart, goes on with what was left.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from function.delivery.deduplicate import ANSWER_SECONDS
from function.errors import RETRY_SECONDS, Busy, Undelivered
from function.observability import events
from function.state import Store
from function.state.store import Texts
from function.telegram.types import Json

log = logging.getLogger(__name__)

MOST_UPDATES = 5000
MOST_BYTES = 16 << 20
THREADS = 16  # chats that are tried at once: some may not respond for seconds
TICK_SECONDS = 0.5
_COUNT = "outbox"
_COUNT_SECONDS = 10 * 365 * 86400.0


@dataclass(frozen=True)
class _Waiting:
    key: str
    size: int
    update: Json
    until: float  # time.monotonic()


class Outbox:
    """Updates whose answers wait, by chat. May be used from any thread.

    `deliver` answers an update unless that was done; it raises Busy or Undelivered for "later".
    """

    def __init__(self, store: Store, texts: Texts, deliver: Callable[[Json], None]) -> None:
        self._store = store
        self._texts = texts
        self._deliver = deliver
        self._lock = threading.Lock()
        self._chats: dict[int, deque[_Waiting]] = {}
        self._not_before: dict[int, float] = {}  # of a chat that waits: time.monotonic()
        self._busy: set[int] = set()  # chats that are being tried
        self._keys: set[str] = set()
        self._bytes = 0
        self._dropped = 0
        self._first = 1  # of the numbers in the store that may have something
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="outbox")

    def start(self) -> None:
        """Try again what waits, in threads of its own."""
        threading.Thread(target=self._run, name="outbox", daemon=True).start()

    def put(self, update: Json, chat: int, retry_after: float = 0) -> None:
        """Keep an update until its answer is delivered, or nobody can expect it any more.

        Nothing is tried for its chat in the next `retry_after` seconds. Where too much waits, the
        oldest is dropped.
        """
        key = f"{_COUNT}:{self._store.count(_COUNT, _COUNT_SECONDS)}"
        row = json.dumps({"chat": chat, "update": update})
        self._texts.set(key, row, ANSWER_SECONDS)
        self._add(key, row, update, chat)
        self._close(chat, retry_after)

    def _close(self, chat: int, seconds: float) -> None:
        """Try nothing for a chat in the next so many seconds, nor before a time named earlier."""
        with self._lock:
            until = time.monotonic() + seconds
            self._not_before[chat] = max(until, self._not_before.get(chat, 0))

    def has(self, chat: int) -> bool:
        """Whether something of this chat waits here."""
        return chat in self._chats

    def status(self) -> dict[str, int]:
        """Return how many updates are `waiting`, since how many seconds the oldest, and `dropped`.

        Those dropped are counted since the start; `bytes` are of what waits.
        """
        with self._lock:
            oldest = min((chat[0].until for chat in self._chats.values()), default=0.0)
            age = time.monotonic() + ANSWER_SECONDS - oldest if oldest else 0
            return {
                "waiting": len(self._keys),
                "bytes": self._bytes,
                "oldest_seconds": round(age),
                "dropped": self._dropped,
            }

    def retry(self) -> list[Future[None]]:
        """Begin to try all chats whose time has come."""
        now = time.monotonic()
        with self._lock:
            due = [
                chat
                for chat in self._chats
                if chat not in self._busy and self._not_before.get(chat, 0) <= now
            ]
            self._busy.update(due)
        return [self._threads.submit(self._retry_chat, chat) for chat in due]

    def adopt(self) -> None:
        """Take on what others left in the store, or this process before a restart."""
        count = self._store.get(_COUNT) or ""
        last = int(count) if count.isdecimal() and len(count) < 16 else 0
        self._first = max(min(self._first, last + 1), last - MOST_UPDATES + 1)
        for number in range(self._first, last + 1):
            key = f"{_COUNT}:{number}"
            if key in self._keys:
                continue
            row = self._texts.get(key)
            if row is None:
                self._first += number == self._first
                continue
            match _loads(row):
                case {"chat": int(chat), "update": {"update_id": int()} as update}:
                    self._add(key, row, update, chat)
                case _:
                    self._texts.set(key, "", 0)
                    log.warning("deleted from the outbox, as it cannot be read: %s", key)

    def _add(self, key: str, row: str, update: Json, chat: int) -> None:
        waiting = _Waiting(key, len(row), update, time.monotonic() + ANSWER_SECONDS)
        with self._lock:
            self._chats.setdefault(chat, deque()).append(waiting)
            self._keys.add(key)
            self._bytes += waiting.size
        while len(self._keys) > MOST_UPDATES or self._bytes > MOST_BYTES:
            with self._lock:
                first = {chat: queue[0] for chat, queue in self._chats.items()}
            oldest = min(first, key=lambda chat: first[chat].until)
            self._remove(oldest, first[oldest])
            self._dropped += 1
            log.warning("update %s dropped: the outbox is full", first[oldest].update["update_id"])

    def _remove(self, chat: int, waiting: _Waiting) -> None:
        """Remove what waits first in a chat, unless that was done meanwhile."""
        with self._lock:
            queue = self._chats.get(chat)
            if not queue or queue[0] is not waiting:
                return
            queue.popleft()
            self._keys.discard(waiting.key)
            self._bytes -= waiting.size
            if not queue:
                del self._chats[chat]
                self._not_before.pop(chat, None)
        self._texts.set(waiting.key, "", 0)

    def _retry_chat(self, chat: int) -> None:
        """Answer a chat's updates in turn, up to the first that must wait longer."""
        try:
            while queue := self._chats.get(chat):
                waiting = queue[0]
                if waiting.until > time.monotonic():
                    self._answer(waiting.update)
                self._remove(chat, waiting)
        except (Busy, Undelivered) as error:
            log.info("chat waits: %s", error)
            self._close(chat, max(error.retry_after, RETRY_SECONDS))
        finally:
            with self._lock:
                self._busy.discard(chat)

    def _answer(self, update: Json) -> None:
        events.begin(update=update["update_id"])
        try:
            self._deliver(update)
        except (Busy, Undelivered):
            raise
        except Exception:
            log.exception("update %s could not be answered", update["update_id"])

    def _run(self) -> None:
        adopt_at = 0.0
        while True:
            try:
                if time.monotonic() >= adopt_at:
                    adopt_at = time.monotonic() + RETRY_SECONDS
                    self.adopt()
                self.retry()
            except Exception:
                log.exception("the outbox failed; it goes on")
            time.sleep(TICK_SECONDS)


def _loads(row: str) -> object:
    try:
        return json.loads(row)
    except (ValueError, RecursionError):
        return None
