"""POST /message and /inline: what a gateway forwards, and whose answers it sends on."""

import base64
from dataclasses import replace

import falcon

from function.answers.replies import Reply
from function.bot import Bot
from function.delivery.api_delivery import ApiDelivery
from function.delivery.deduplicate import as_call
from function.errors import Busy, Undelivered
from function.http.request import credentials, demand, read_object
from function.http.response import EMPTY, respond
from function.settings import Settings
from function.telegram.calls import caption_fields
from function.telegram.types import Json
from function.telegram.updates import read_gateway_query


class Message:
    """Messages that a gateway forwards."""

    def __init__(self, settings: Settings, bot: Bot) -> None:
        self._secrets = settings.gateway_secrets
        self._bot = bot

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take one message (https://core.telegram.org/bots/api#message).

        Request: a JSON object. With a token or WEBHOOK_SECRET configured, Authorization must be
        `Bearer` and the webhook's secret or the bot's token.

        Response: `{"type": "text", "body": TEXT}` with the parameters of sendMessage beside, or
        `{"type": "empty", "body": ""}` where there is nothing to say. What the program drew is in
        `pictures`, a list of `{"type": "image/png", "data": BASE64}`, and what to say beneath them
        in `caption` and `caption_entities`.

        200 accepted; 400, 401, 408, 413, 415 as for updates.
        """
        demand(self._secrets, *credentials(req))
        request = self._bot.read_message(read_object(req))
        if request is None:
            return respond(resp, EMPTY)
        try:
            reply = self._bot.reply(request)
        except (Busy, Undelivered) as error:
            reply = Reply(self._bot.explain(error))
        body = gateway(as_call(request, reply and replace(reply, pictures=())))
        if reply and reply.pictures:
            body |= caption_fields(reply.caption)
            body["pictures"] = [
                {"type": "image/png", "data": base64.b64encode(each.png).decode()}
                for each in reply.pictures
            ]
        return respond(resp, body)


class Inline:
    """Inline queries that a gateway forwards."""

    def __init__(self, settings: Settings, bot: Bot, delivery: ApiDelivery | None) -> None:
        self._secrets = settings.gateway_secrets
        self._bot = bot
        self._delivery = delivery

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take one query: `{"from_user_id": ID, "inline_query_id": ID, "query": TEXT}`.

        Response: the parameters of answerInlineQuery. The gateway ignores them; with DELIVERY=api
        the call is made as well.

        200 accepted; 400, 401, 408, 413, 415 as for messages; 503 as for updates.
        """
        demand(self._secrets, *credentials(req))
        query = read_gateway_query(read_object(req))
        if query is None:
            raise falcon.HTTPBadRequest(title="inline_query_id and query must be given as text")
        call = as_call(query, self._bot.results(query))
        if self._delivery and call:
            self._delivery.make(call)
        respond(resp, gateway(call))


def gateway(call: Json | None) -> Json:
    """A call as the gateway reads it: its fields, and the text again under `type` and `body`."""
    if call is None:
        return EMPTY
    fields = {name: value for name, value in call.items() if name != "method"}
    return fields | ({"type": "text", "body": call["text"]} if "text" in call else EMPTY)
