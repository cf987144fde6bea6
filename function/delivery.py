"""Answers by calls of their own: an update is taken at once, and answered by one of a few threads.

So an edited program changes the earlier answer, and long output comes as a file.
"""

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from function import telegram
from function.bot_api import BotApi, BotApiError, Refused, Undelivered
from function.chat import Busy, Chat
from function.replies import Reply, say
from function.store import Store
from function.telegram import InlineQuery, Json, Request
from function.updates import EDIT_SECONDS, Updates

log = logging.getLogger(__name__)

THREADS = 32  # most of their time goes to waiting for Telegram
MOST_WAITING = 1000  # updates that were taken and are not answered yet
TRIES = 4


class Delivery:
    """Answers updates through the Bot API: those of one chat in turn, as they came."""

    def __init__(self, chat: Chat, store: Store, api: BotApi) -> None:
        self._chat = chat
        self._store = store
        self._api = api
        self._updates = Updates(chat, store, self._send)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="delivery")
        self._lock = threading.Lock()
        self._waiting: defaultdict[int, deque[Json]] = defaultdict(deque)
        self._count = 0

    def take(self, update: Json) -> None:
        """Take an update to be answered soon. Raises Busy when too many wait."""
        request = telegram.read_update(update, self._chat.bot)
        if request is None:
            return
        queue = request.sender if isinstance(request, InlineQuery) else request.place.chat_id
        with self._lock:
            if self._count >= MOST_WAITING:
                raise Busy(Reply(say("Too many programs wait already.")), retry_after=5)
            self._count += 1
            self._waiting[queue].append(update)
            if len(self._waiting[queue]) == 1:
                self._threads.submit(self._empty, queue)

    def make(self, call: Json) -> None:
        """Make a call soon; it is logged where it fails."""
        self._threads.submit(self._logged, self._api.deliver, call)

    def close(self) -> None:
        """Answer what was taken, then return."""
        self._threads.shutdown()

    def answer(self, update: Json) -> None:
        """Answer an update now. Tries for minutes; what remains impossible is logged."""
        self._logged(self._answer, update)

    def _logged(self, work: Callable[[Json], object], given: Json) -> None:
        try:
            work(given)
        except BotApiError as error:
            log.warning("not delivered: %s", error)
        except Exception:
            log.exception("an update could not be answered")

    def _empty(self, queue: int) -> None:
        """Answer what waits in a queue; each update stays there until it is answered."""
        while True:
            self.answer(self._waiting[queue][0])
            with self._lock:
                self._count -= 1
                self._waiting[queue].popleft()
                if not self._waiting[queue]:
                    del self._waiting[queue]
                    return

    def _answer(self, update: Json) -> None:
        for _ in range(TRIES - 1):
            try:
                return self._answer_once(update)
            except Busy as busy:
                time.sleep(busy.retry_after)
            except Undelivered as error:
                log.warning("trying again: %s", error)
        try:
            self._answer_once(update)
        except Busy as busy:
            request = telegram.read_update(update, self._chat.bot)
            if isinstance(request, Request):
                self._send(request, busy.reply)

    def _answer_once(self, update: Json) -> None:
        call = self._updates.answer(update)
        if call is not None:
            self._api.deliver(call)

    def _send(self, request: Request, reply: Reply) -> None:
        """Put the answer into the earlier one if there is one, else send it."""
        place = request.place
        key = f"answer:{place.chat_id}:{place.message_id}"
        earlier = self._store.get(key) if request.edited else None
        is_edited = earlier is not None and self._edit(place.chat_id, int(earlier), reply)
        if reply.document:
            call = telegram.send_document(place, reply.caption, as_reply=request.edited)
            self._api.deliver(call, {"document": ("output.txt", reply.document.encode())})
        elif not is_edited:
            call = telegram.send_message(place, reply.message, as_reply=request.edited)
            sent = self._api.deliver(call)
            if sent is not None:
                self._store.set(key, str(sent["message_id"]), EDIT_SECONDS)

    def _edit(self, chat_id: int, message_id: int, reply: Reply) -> bool:
        try:
            self._api.deliver(telegram.edit_message(chat_id, message_id, reply.message))
        except Refused as error:
            log.info("sent anew: %s", error)
            return False
        return True
