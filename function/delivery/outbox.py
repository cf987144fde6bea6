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
from dataclasses import dataclass, field

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


@dataclass
class _Chat:
    number: int
    queue: deque[_Waiting] = field(default_factory=deque)  # the oldest first
    not_before: float = 0.0  # time.monotonic() of the next try
    is_tried: bool = False  # now, by a thread


class Outbox:
    """Updates whose answers wait, by chat. May be used from any thread.

    `deliver` answers an update unless that was done; it raises Busy or Undelivered for "later".
    """

    def __init__(self, store: Store, texts: Texts, deliver: Callable[[Json], None]) -> None:
        self._store = store
        self._texts = texts
        self._deliver = deliver
        self._lock = threading.Lock()
        self._chats: dict[int, _Chat] = {}  # none of them empty
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
        self._add(key, row, update, chat, time.monotonic() + retry_after)

    def has(self, chat: int) -> bool:
        """Whether something of this chat waits here."""
        return chat in self._chats

    def status(self) -> dict[str, int]:
        """Return how many updates are `waiting`, their `bytes`, the oldest's age, and `dropped`."""
        with self._lock:
            oldest = min((chat.queue[0].until for chat in self._chats.values()), default=0.0)
            age = time.monotonic() + ANSWER_SECONDS - oldest if oldest else 0
            return {
                "waiting": len(self._keys),
                "bytes": self._bytes,
                "oldest_seconds": round(age),
                "dropped": self._dropped,  # since the start
            }

    def retry(self) -> list[Future[None]]:
        """Begin to try all chats whose time has come."""
        now = time.monotonic()
        with self._lock:
            due = [c for c in self._chats.values() if not c.is_tried and c.not_before <= now]
            for chat in due:
                chat.is_tried = True
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
                    self._add(key, row, update, chat, 0)
                case _:
                    self._texts.set(key, "", 0)
                    log.warning("deleted from the outbox, as it cannot be read: %s", key)

    def _add(self, key: str, row: str, update: Json, chat: int, not_before: float) -> None:
        waiting = _Waiting(key, len(row), update, time.monotonic() + ANSWER_SECONDS)
        with self._lock:
            kept = self._chats.setdefault(chat, _Chat(chat))
            kept.queue.append(waiting)
            kept.not_before = max(kept.not_before, not_before)
            self._keys.add(key)
            self._bytes += waiting.size
        while len(self._keys) > MOST_UPDATES or self._bytes > MOST_BYTES:
            with self._lock:
                oldest = min(self._chats.values(), key=lambda chat: chat.queue[0].until)
                dropped = oldest.queue[0]
            self._remove(oldest, dropped)
            self._dropped += 1
            log.warning("update %s dropped: the outbox is full", dropped.update["update_id"])

    def _remove(self, chat: _Chat, waiting: _Waiting) -> None:
        """Remove what waits first in a chat, unless that was done meanwhile."""
        with self._lock:
            if not chat.queue or chat.queue[0] is not waiting:
                return
            chat.queue.popleft()
            self._keys.discard(waiting.key)
            self._bytes -= waiting.size
            if not chat.queue:
                del self._chats[chat.number]
        self._texts.set(waiting.key, "", 0)

    def _retry_chat(self, chat: _Chat) -> None:
        """Answer a chat's updates in turn, up to the first that must wait longer."""
        try:
            while chat.queue:
                waiting = chat.queue[0]
                if waiting.until > time.monotonic():
                    self._answer(waiting.update)
                self._remove(chat, waiting)
        except (Busy, Undelivered) as error:
            log.info("chat waits: %s", error)
            later = time.monotonic() + max(error.retry_after, RETRY_SECONDS)
            with self._lock:
                chat.not_before = max(chat.not_before, later)
        finally:
            with self._lock:
                chat.is_tried = False

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
