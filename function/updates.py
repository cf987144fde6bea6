"""Each update once: repeats get the first one's answer, and an edit counts if the text changed."""

import hashlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future

from function import telegram
from function.chat import Chat
from function.replies import Reply
from function.store import Store
from function.telegram import InlineQuery, Json, Request

ANSWER_SECONDS = 3600  # Telegram repeats an update at most two minutes after the last try
EDIT_SECONDS = 86400

Send = Callable[[Request, Reply], Json | None]


def in_the_response(request: Request, reply: Reply) -> Json:
    """Sends an answer as the webhook's response: nothing of the past can be changed there."""
    return telegram.send_message(request.place, reply.message, as_reply=request.edited)


class Updates:
    """Takes updates from any thread and returns the Bot API call that answers each, or None.

    `send` puts a reply on its way: it returns a call to be made by the caller, or None if it has
    made its own. Same for `answer_inline`.
    """

    def __init__(self, chat: Chat, store: Store, send: Send = in_the_response) -> None:
        self._chat = chat
        self._store = store
        self._send = send
        self._lock = threading.Lock()
        self._running: dict[int, Future[Json | None]] = {}

    def answer(self, update: Json) -> Json | None:
        """Answer an update that has an integer `update_id`. Raises Busy, and then takes it again.

        A repeat that comes while the first one is being answered waits for it.
        """
        update_id = update["update_id"]
        with self._lock:
            first = self._running.get(update_id)
            if first is None:
                mine = self._running[update_id] = Future[Json | None]()
        if first is not None:
            return first.result()
        try:
            mine.set_result(self._answer_once(update_id, update))
        except BaseException as error:
            mine.set_exception(error)
        with self._lock:
            del self._running[update_id]
        return mine.result()

    def _answer_once(self, update_id: int, update: Json) -> Json | None:
        request = telegram.read_update(update, self._chat.bot)
        if request is None:
            return None
        key = f"update:{update_id}"
        kept = self._store.get(key)
        if kept is not None:
            call: Json | None = json.loads(kept)
            return call
        call = self._answer_request(request)
        self._store.set(key, json.dumps(call), ANSWER_SECONDS)
        return call

    def _answer_request(self, request: Request | InlineQuery) -> Json | None:
        if isinstance(request, InlineQuery):
            return self._chat.results(request)
        key = f"text:{request.place.chat_id}:{request.place.message_id}"
        fingerprint = hashlib.sha256(f"{key}:{request.text}".encode(errors="replace")).hexdigest()
        if request.edited and (
            request.wish == "mode" or self._store.get(key) in (None, fingerprint)
        ):
            return None
        reply = self._chat.reply(request)
        self._store.set(key, fingerprint, EDIT_SECONDS)
        return self._send(request, reply)
