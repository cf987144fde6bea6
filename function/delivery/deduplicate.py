"""Each message once: repeats get the first one's answer, and an edit counts if the text changed."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass

from function.bot import Bot
from function.delivery.kept import decode, encode
from function.delivery.lease import Leases
from function.observability import events
from function.state.store import Texts
from function.telegram import calls
from function.telegram.types import InlineQuery, Json, Reply, Request

ANSWER_SECONDS = 7200  # from the last try; Telegram puts the next off for an hour at most
EDIT_SECONDS = 86400


@dataclass(frozen=True)
class Deduplication:
    """Answers updates from any thread, at any replica, and works each message out once."""

    bot: Bot
    texts: Texts
    leases: Leases

    def answer(self, update: Json) -> Json | None:
        """Return the call that answers an update with an integer `update_id`; None: it needs none.

        A repeat that comes meanwhile waits. Raises Busy and Undelivered, and then answers the
        update when it comes again.
        """
        request = self.bot.read(update)
        if isinstance(request, InlineQuery):
            return calls.answer_inline_query(request.id, self.bot.results(request))
        if request is None:
            return None
        with self.leases.acquire(name_of(update)):
            reply = self.work_out(update, request)
            return calls.answer(request, reply) if reply else None

    def work_out(self, update: Json, request: Request) -> Reply | None:
        """The reply to an update that was read already, and whose lease the caller holds."""
        key = name_of(update)
        if kept := self.texts.get(key):
            with suppress(ValueError):  # by another version of this program
                reply = decode(kept)
                self.texts.set(key, kept, ANSWER_SECONDS)
                return reply
        reply = self._reply(key, request)
        if not (reply and reply.pictures):  # rather than kept, drawn again
            self.texts.set(key, encode(reply), ANSWER_SECONDS)
        return reply

    def _reply(self, update: str, request: Request) -> Reply | None:
        key = f"text:{request.address.chat_id}:{request.address.message_id}"
        told = f"{key}:{request.text}".encode(errors="replace")
        fingerprint = hashlib.blake2b(told, digest_size=32).hexdigest()
        if request.edited and (
            request.action == "mode" or not self._is_changed(key, fingerprint, update)
        ):
            events.emit("ignored", kind="unchanged edit")
            return None
        reply = self.bot.reply(request)
        self.texts.set(key, f"{fingerprint} {update}", EDIT_SECONDS)
        return reply

    def _is_changed(self, key: str, fingerprint: str, update: str) -> bool:
        """Whether a message that was answered has another text now, or had it from this update.

        The latter is an update whose worker died between the text and the answer.
        """
        known = self.texts.get(key)
        if known is None:
            return False
        text, _, by = known.partition(" ")
        return text != fingerprint or by == update


def name_of(update: Json) -> str:
    """What is leased by the one that works on an update."""
    return f"update:{update['update_id']}"
