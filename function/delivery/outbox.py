"""What Telegram would not take yet: kept in the store, and tried again until it does.

Another replica that shares the store, or this one after a restart, goes on with it.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from function.bot import Busy
from function.delivery.updates import ANSWER_SECONDS
from function.errors import Undelivered
from function.state import Store
from function.telegram.bot_api import Json

log = logging.getLogger(__name__)

ROUND_SECONDS = 5.0
MOST_KEPT = 5000
_COUNT = "outbox"
_COUNT_SECONDS = 10 * 365 * 86400.0


@dataclass(frozen=True)
class _Waiting:
    key: str
    queue: object
    update: Json
    until: float  # time.monotonic()


class Outbox:
    """Updates whose answers wait. May be used from any thread.

    `deliver` answers an update unless that was done; it raises Busy or Undelivered for "later".
    """

    def __init__(self, store: Store, deliver: Callable[[Json], None]) -> None:
        self._store = store
        self._deliver = deliver
        self._first = 1  # of the numbers in the store that may have something
        # What this process has put, by update: the store may be lost, and count anew meanwhile.
        self._own: dict[int, _Waiting] = {}

    def start(self) -> None:
        """Try again what waits, every few seconds, in a thread of its own."""
        threading.Thread(target=self._run, name="outbox", daemon=True).start()

    def put(self, update: Json, queue: object = None) -> None:
        """Keep an update until its answer is delivered, or nobody can expect it any more.

        `queue` names what is answered in turn.
        """
        key = f"{_COUNT}:{self._store.count(_COUNT, _COUNT_SECONDS)}"
        until = time.monotonic() + ANSWER_SECONDS
        self._own[update["update_id"]] = _Waiting(key, queue, update, until)
        self._store.set(key, json.dumps(update), ANSWER_SECONDS)

    def has(self, queue: object) -> bool:
        """Whether something of this queue waits here."""
        return any(waiting.queue == queue for waiting in list(self._own.values()))

    def status(self) -> Mapping[str, float]:
        """Return how many answers are `waiting` here, and since how many seconds the oldest is."""
        waiting = list(self._own.values())
        left = min((each.until - time.monotonic() for each in waiting), default=ANSWER_SECONDS)
        return {"waiting": len(waiting), "oldest_seconds": round(ANSWER_SECONDS - left)}

    def retry(self) -> None:
        """Try once all that waits, as it came: what this process has put, and what others left."""
        for number, waiting in list(self._own.items()):
            if waiting.until < time.monotonic() or self._is_done(waiting.update):
                self._store.set(waiting.key, "", 0)
                del self._own[number]
        here = {waiting.key for waiting in list(self._own.values())}
        last = int(self._store.get(_COUNT) or 0)
        self._first = max(min(self._first, last + 1), last - MOST_KEPT + 1)
        for number in range(self._first, last + 1):
            key = f"{_COUNT}:{number}"
            kept = None if key in here else self._store.get(key)
            if kept is not None and self._is_done(json.loads(kept)):
                self._store.set(key, "", 0)
                kept = None
            if kept is None and key not in here and number == self._first:
                self._first += 1

    def _is_done(self, update: Json) -> bool:
        try:
            self._deliver(update)
        except (Busy, Undelivered) as error:
            log.info("update %s waits: %s", update["update_id"], error)
            return False
        except Exception:
            log.exception("update %s could not be answered", update["update_id"])
        return True

    def _run(self) -> None:
        while True:
            time.sleep(ROUND_SECONDS)
            self.retry()
