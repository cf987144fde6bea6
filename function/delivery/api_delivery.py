"""Answers by calls of their own, each made before its update counts as accepted.

So an edited program changes the earlier answer, and long output comes as a file. If this process
dies meanwhile, Telegram repeats what was not accepted, for a day
(https://core.telegram.org/bots/api#setwebhook). What Telegram itself does not accept goes into the
outbox: refused, it would hold back all that comes after it in its chat.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from function.bot import Bot
from function.delivery.deduplicate import ANSWER_SECONDS, EDIT_SECONDS, Deduplication, name_of
from function.delivery.lease import Leases
from function.delivery.outbox import Outbox
from function.errors import Busy, Refused, Undelivered
from function.observability import events
from function.parts import text_of
from function.state import Store
from function.state.store import Texts
from function.telegram import calls
from function.telegram.lengths import CAPTION_UNITS, units
from function.telegram.types import InlineQuery, Json, Reply, Request

if TYPE_CHECKING:
    from function.telegram.client import BotApi

log = logging.getLogger(__name__)

# Each holds one of the server's threads, of which health and others need some (gunicorn_conf).
# Telegram brings 40 at once, unless setWebhook is told otherwise.
MOST_AT_ONCE = 48


class ApiDelivery:
    """Answers updates through the Bot API: those of one chat in turn, as they came.

    Its methods raise Busy where too many are under way.
    """

    def __init__(self, bot: Bot, store: Store, texts: Texts, api: BotApi) -> None:
        self._bot = bot
        self._store = store
        self._texts = texts
        self._api = api
        self._leases = Leases(store)
        self._deduplication = Deduplication(bot, texts, self._leases)
        self._slots = threading.Semaphore(MOST_AT_ONCE)
        self._lock = threading.Lock()
        self._last: dict[int, threading.Event] = {}  # of each chat: set when that is done
        self.outbox = Outbox(store, texts, self.answer)

    def accept(self, update: Json) -> None:
        """Answer an update; or see to it that it will be, where Telegram cannot be reached now."""
        request = self._bot.read(update)
        if isinstance(request, InlineQuery):
            self.make(calls.answer_inline_query(request.id, self._bot.results(request)))
        elif request is not None:
            chat, retry_after = request.address.chat_id, 0.0
            with self._slot(), self._turn(chat):
                if not self.outbox.has(chat):
                    try:
                        self._answer(update, request)
                        return
                    except Undelivered as error:
                        log.warning("update %s waits: %s", update["update_id"], error)
                        retry_after = error.retry_after
                self.outbox.put(update, chat, retry_after)

    def answer(self, update: Json) -> None:
        """Answer a message's update, unless that was done before.

        Returns when the answer is there, or can never be, which is logged. Raises Undelivered
        where Telegram cannot be reached.
        """
        request = self._bot.read(update)
        if isinstance(request, Request):
            with self._slot(), self._turn(request.address.chat_id):
                self._answer(update, request)

    def make(self, call: Json) -> None:
        """Make a call that answers a query; nobody waits for one that Telegram does not take."""
        with self._slot():
            try:
                self._deliver(call)
            except Undelivered as error:
                log.warning("not delivered: %s", error)

    def _answer(self, update: Json, request: Request) -> None:
        done = f"delivered:{update['update_id']}"
        with self._leases.acquire(name_of(update)):
            if self._store.get(done):
                return
            reply = self._deduplication.work_out(update, request)
            if reply is not None:
                self._send(request, reply)
                self._store.set(done, "1", ANSWER_SECONDS)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._slots.acquire(blocking=False):
            raise Busy("updates")
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def _turn(self, chat: int) -> Iterator[None]:
        """Wait until all that came to a chat earlier is done."""
        mine = threading.Event()
        with self._lock:
            earlier, self._last[chat] = self._last.get(chat), mine
        if earlier:
            earlier.wait()
        try:
            yield
        finally:
            mine.set()
            with self._lock:
                if self._last[chat] is mine:
                    del self._last[chat]

    def _send(self, request: Request, reply: Reply) -> None:
        """Put the answer into the earlier one if there is one, else send it."""
        address = request.address
        key = f"answer:{address.chat_id}:{address.message_id}"
        earlier = self._texts.get(key) if request.edited and not reply.asks else None
        if reply.pictures and units(text_of(reply.message)) > CAPTION_UNITS:
            self._deliver(calls.answer(request, Reply(reply.message)))
            reply = reply._replace(caption=())
        is_edited = earlier is not None and self._edit(address.chat_id, int(earlier), reply)
        if reply.document:
            caption = () if reply.pictures else reply.caption
            self._deliver(calls.document(request, caption, reply.document))
        if not is_edited and (reply.pictures or not reply.document):
            sent = self._deliver(calls.answer(request, reply))
            if isinstance(sent, dict):  # an album is a list, whose pictures are sent anew
                self._texts.set(key, str(sent["message_id"]), EDIT_SECONDS)

    def _edit(self, chat_id: int, message_id: int, reply: Reply) -> bool:
        if len(reply.pictures) > 1:
            return False
        try:
            self._api.deliver(calls.edit(chat_id, message_id, reply))
        except Refused as error:
            log.info("sent anew: %s", error)
            return False
        return True

    def _deliver(self, call: Json) -> Any:
        """Make a call and return its result; None where it will never be done."""
        try:
            result = self._api.deliver(call)
        except Refused as error:
            events.emit("delivery", logging.WARNING, result=error.code, reason=str(error))
            return None
        except Undelivered:
            events.emit("delivery", logging.DEBUG, result="later")
            raise
        events.emit("delivery", logging.DEBUG, result="ok")
        return result
