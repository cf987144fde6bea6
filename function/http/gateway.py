"""POST /message and /inline: what a gateway forwards, and whose answers it sends on."""

import falcon

from function.answers import replies
from function.answers.replies import Reply, say
from function.bot import Busy, Chat
from function.delivery.delivery import Delivery
from function.errors import Undelivered
from function.http.request import credentials, demand, read_object
from function.http.response import respond
from function.settings import Settings
from function.telegram import bot_api as telegram


class Message:
    """Messages that a gateway forwards."""

    def __init__(self, settings: Settings, chat: Chat) -> None:
        self._secrets = settings.gateway_secrets
        self._chat = chat

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take one message (https://core.telegram.org/bots/api#message).

        Request: a JSON object. With a token or WEBHOOK_SECRET configured, Authorization must be
        `Bearer` and the webhook's secret or the bot's token.

        Response: `{"type": "text", "body": TEXT}` with the parameters of sendMessage beside, or
        `{"type": "empty", "body": ""}` where there is nothing to say.

        200 accepted; 400, 401, 408, 413, 415 as for updates.
        """
        demand(self._secrets, *credentials(req))
        request = telegram.read_message(read_object(req), self._chat.bot)
        if request is None:
            return respond(resp, replies.EMPTY)
        try:
            reply = self._chat.reply(request)
        except Busy as busy:
            reply = busy.reply
        except Undelivered:
            reply = Reply(say("Telegram does not give me the file now. Try again in a moment."))
        return respond(resp, replies.gateway(telegram.send_message(request.place, reply.message)))


class Inline:
    """Inline queries that a gateway forwards."""

    def __init__(self, settings: Settings, chat: Chat, delivery: Delivery | None) -> None:
        self._secrets = settings.gateway_secrets
        self._chat = chat
        self._delivery = delivery

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take one query: `{"from_user_id": ID, "inline_query_id": ID, "query": TEXT}`.

        Response: the parameters of answerInlineQuery. The gateway ignores them; with DELIVERY=api
        the call is made as well.

        200 accepted; 400, 401, 408, 413, 415 as for messages; 503 as for updates.
        """
        demand(self._secrets, *credentials(req))
        query = telegram.read_gateway_query(read_object(req))
        if query is None:
            raise falcon.HTTPBadRequest(title="inline_query_id and query must be given as text")
        call = self._chat.results(query)
        if self._delivery:
            self._delivery.make(call)
        respond(resp, replies.gateway(call))
