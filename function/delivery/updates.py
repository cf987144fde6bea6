"""Each update once: repeats get the first one's answer, and an edit counts if the text changed."""

import hashlib
import json
from collections.abc import Callable

from function.answers.replies import Reply
from function.bot import Chat
from function.delivery.lease import Claims
from function.state import Store
from function.telegram import bot_api as telegram
from function.telegram.bot_api import InlineQuery, Json, Request

ANSWER_SECONDS = 7200  # from the last try; Telegram puts the next off for an hour at most
EDIT_SECONDS = 86400


def as_a_call(request: Request, reply: Reply) -> Json:
    """The answer as the webhook's response: nothing of the past can be changed there."""
    return telegram.send_message(request.place, reply.message, as_reply=request.edited)


def name_of(update: Json) -> str:
    """What is claimed by who works on an update."""
    return f"update:{update['update_id']}"


class Updates:
    """Takes updates from any thread, at any replica, and works each out once.

    `form` gives a reply the form in which it is kept and returned.
    """

    def __init__(
        self,
        chat: Chat,
        store: Store,
        claims: Claims,
        form: Callable[[Request, Reply], Json] = as_a_call,
    ) -> None:
        self._chat = chat
        self._store = store
        self._claims = claims
        self._form = form

    def answer(self, update: Json) -> Json | None:
        """Return the answer to an update that has an integer `update_id`; None: it needs none.

        A message's is in `form`, a query's is a Bot API call. A repeat that comes meanwhile waits.
        Raises Busy and Undelivered, and then takes the update again.
        """
        request = telegram.read_update(update, self._chat.bot)
        if request is None:
            return None
        with self._claims.hold(name_of(update)):
            return self.work_out(update, request)

    def work_out(self, update: Json, request: Request | InlineQuery) -> Json | None:
        """Do the same for an update that was read already, and whose claim the caller holds."""
        key = name_of(update)
        kept = self._store.get(key)
        answer: Json | None = json.loads(kept) if kept else self._answer_request(key, request)
        self._store.set(key, json.dumps(answer), ANSWER_SECONDS)
        return answer

    def _answer_request(self, update: str, request: Request | InlineQuery) -> Json | None:
        if isinstance(request, InlineQuery):
            return self._chat.results(request)
        key = f"text:{request.place.chat_id}:{request.place.message_id}"
        fingerprint = hashlib.sha256(f"{key}:{request.text}".encode(errors="replace")).hexdigest()
        if request.edited and (
            request.wish == "mode" or not self._is_changed(key, fingerprint, update)
        ):
            return None
        reply = self._chat.reply(request)
        self._store.set(key, f"{fingerprint} {update}", EDIT_SECONDS)
        return self._form(request, reply)

    def _is_changed(self, key: str, fingerprint: str, update: str) -> bool:
        """Whether a message that was answered has another text now, or had it from this update.

        The latter is an update whose worker died between the text and the answer.
        """
        known = self._store.get(key)
        if known is None:
            return False
        text, _, by = known.partition(" ")
        return text != fingerprint or by == update
