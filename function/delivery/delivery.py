"""Answers by calls of their own, each made before its update counts as taken.

So an edited program changes the earlier answer, and long output comes as a file. If this process
dies meanwhile, Telegram repeats what was not taken, for a day
(https://core.telegram.org/bots/api#setwebhook). What Telegram itself does not take goes into the
outbox: refused, it would hold back all that comes after it in its chat.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from function.answers.replies import Reply, say
from function.bot import Busy, Chat
from function.delivery.lease import Claims
from function.delivery.outbox import Outbox
from function.delivery.updates import ANSWER_SECONDS, EDIT_SECONDS, Updates, name_of
from function.errors import Refused, Undelivered
from function.state import Store
from function.telegram import bot_api as telegram
from function.telegram.bot_api import Entity, InlineQuery, Json, Message, Request

if TYPE_CHECKING:
    from function.telegram.client import BotApi, Files

log = logging.getLogger(__name__)

# Each holds one of the server's threads, of which health and others need some (function.server).
# Telegram brings 40 at once, unless setWebhook is told otherwise.
MOST_AT_ONCE = 48


class Delivery:
    """Answers updates through the Bot API: those of one chat in turn, as they came.

    Its methods raise Busy where too many are under way.
    """

    def __init__(self, chat: Chat, store: Store, api: BotApi) -> None:
        self._bot = chat.bot
        self._store = store
        self._api = api
        self._claims = Claims(store)
        self._updates = Updates(chat, store, self._claims, _as_kept)
        self._places = threading.Semaphore(MOST_AT_ONCE)
        self._lock = threading.Lock()
        self._last: dict[object, threading.Event] = {}  # of each queue: set when that is done
        self.outbox = Outbox(store, self.answer)

    def take(self, update: Json) -> None:
        """Answer an update; or see to it that it will be, where Telegram cannot be reached now."""
        request = telegram.read_update(update, self._bot)
        if request is None:
            return None
        queue = _queue(request)
        if not self.outbox.has(queue):
            try:
                return self._answer(update, request)
            except Undelivered as error:
                log.warning("update %s waits: %s", update["update_id"], error)
        if isinstance(request, Request):  # nobody waits for a query's answer any more
            self.outbox.put(update, queue)
        return None

    def answer(self, update: Json) -> None:
        """Answer an update, unless that was done before.

        Returns when the answer is there, or can never be, which is logged. Raises Undelivered
        where Telegram cannot be reached.
        """
        request = telegram.read_update(update, self._bot)
        if request is not None:
            self._answer(update, request)

    def _answer(self, update: Json, request: Request | InlineQuery) -> None:
        done = f"delivered:{update['update_id']}"
        with self._place(), self._turn(_queue(request)), self._claims.hold(name_of(update)):
            if self._store.get(done):
                return
            answer = self._updates.work_out(update, request)
            if answer is not None:
                self._deliver_answer(request, answer)
                self._store.set(done, "1", ANSWER_SECONDS)

    def make(self, call: Json) -> None:
        """Make a call that answers a gateway's query; it is logged where Telegram is not there."""
        with self._place():
            try:
                self._deliver(call)
            except Undelivered as error:
                log.warning("not delivered: %s", error)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Busy(Reply(say("Too many programs wait already.")), retry_after=2)
        try:
            yield
        finally:
            self._places.release()

    @contextmanager
    def _turn(self, queue: object) -> Iterator[None]:
        """Wait until all that came to a queue earlier is done."""
        mine = threading.Event()
        with self._lock:
            earlier, self._last[queue] = self._last.get(queue), mine
        if earlier:
            earlier.wait()
        try:
            yield
        finally:
            mine.set()
            with self._lock:
                if self._last[queue] is mine:
                    del self._last[queue]

    def _deliver_answer(self, request: Request | InlineQuery, answer: Json) -> None:
        if isinstance(request, InlineQuery):
            self._deliver(answer)
        else:
            self._send(request, _from_kept(answer))

    def _send(self, request: Request, reply: Reply) -> None:
        """Put the answer into the earlier one if there is one, else send it."""
        place = request.place
        key = f"answer:{place.chat_id}:{place.message_id}"
        earlier = self._store.get(key) if request.edited else None
        is_edited = earlier is not None and self._edit(place.chat_id, int(earlier), reply)
        if reply.document:
            call = telegram.send_document(place, reply.caption, as_reply=request.edited)
            self._deliver(call, {"document": ("output.txt", reply.document.encode())})
        elif not is_edited:
            call = telegram.send_message(place, reply.message, as_reply=request.edited)
            sent = self._deliver(call)
            if sent is not None:
                self._store.set(key, str(sent["message_id"]), EDIT_SECONDS)

    def _edit(self, chat_id: int, message_id: int, reply: Reply) -> bool:
        try:
            self._api.deliver(telegram.edit_message(chat_id, message_id, reply.message))
        except Refused as error:
            log.info("sent anew: %s", error)
            return False
        return True

    def _deliver(self, call: Json, files: Files | None = None) -> Json | None:
        """Make a call and return its result; None where it will never be done."""
        try:
            result: Json | None = self._api.deliver(call, files)
        except Refused as error:
            log.warning("not delivered: %s", error)
            return None
        return result


def _queue(request: Request | InlineQuery) -> object:
    """What is answered in turn: a chat's messages, and a person's queries."""
    if isinstance(request, InlineQuery):
        return "queries", request.sender
    return request.place.chat_id


def _as_kept(_request: Request, reply: Reply) -> Json:
    return asdict(reply)


def _from_kept(kept: Json) -> Reply:
    return Reply(_message(kept["message"]), _message(kept["caption"]), kept["document"])


def _message(kept: Json) -> Message:
    return Message(kept["text"], tuple(Entity(**entity) for entity in kept["entities"]))
