"""What Telegram would not take yet: kept in the store, and tried again until it does.

Another replica that shares the store, or this one after a restart, goes on with it.
"""

import json
import logging
import threading
import time
from collections.abc import Callable

from function.bot_api import Undelivered
from function.chat import Busy
from function.store import Store
from function.telegram import Json
from function.updates import ANSWER_SECONDS

log = logging.getLogger(__name__)

ROUND_SECONDS = 5.0
MOST_KEPT = 5000
_COUNT = "outbox"
_COUNT_SECONDS = 10 * 365 * 86400.0


class Outbox:
    """Updates whose answers wait. May be used from any thread.

    `deliver` answers an update unless that was done; it raises Busy or Undelivered for "later".
    """

    def __init__(self, store: Store, deliver: Callable[[Json], None]) -> None:
        self._store = store
        self._deliver = deliver
        self._first = 0

    def start(self) -> None:
        """Try again what waits, every few seconds, in a thread of its own."""
        threading.Thread(target=self._run, name="outbox", daemon=True).start()

    def put(self, update: Json) -> None:
        """Keep an update until its answer is delivered, or nobody can expect it any more."""
        number = self._store.count(_COUNT, _COUNT_SECONDS)
        self._store.set(_key(number), json.dumps(update), ANSWER_SECONDS)

    def retry(self) -> None:
        """Try once all that waits, in the order in which it came."""
        last = int(self._store.get(_COUNT) or 0)
        self._first = max(self._first, last - MOST_KEPT + 1, 1)
        for number in range(self._first, last + 1):
            kept = self._store.get(_key(number))
            if kept is not None and self._is_done(json.loads(kept)):
                self._store.set(_key(number), "", 0)
                kept = None
            if kept is None and number == self._first:
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


def _key(number: int) -> str:
    return f"{_COUNT}:{number}"
