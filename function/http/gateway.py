"""POST /message and /inline: what a gateway forwards, and whose answers it sends on."""

import base64
from dataclasses import dataclass

import falcon

from function.bot import Bot
from function.delivery.api_delivery import ApiDelivery
from function.errors import Busy, Undelivered
from function.http.request import credentials, demand, read_object
from function.http.response import EMPTY, respond
from function.settings import Settings
from function.telegram import calls
from function.telegram.types import Json, Reply, Request
from function.telegram.updates import read_gateway_query


@dataclass(frozen=True)
class Message:
    """Messages that a gateway forwards."""

    settings: Settings
    bot: Bot

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answer one message (https://core.telegram.org/bots/api#message)."""
        demand(self.settings.gateway_secrets, *credentials(req))
        request = self.bot.read({"message": read_object(req)})
        if not isinstance(request, Request):
            return respond(resp, EMPTY)
        try:
            reply = self.bot.reply(request)
        except (Busy, Undelivered) as error:
            reply = Reply(self.bot.explain(error))
        if reply is None:
            return respond(resp, EMPTY)
        body = gateway(calls.answer(request, Reply(reply.message, asks=reply.asks)))
        if reply.pictures:
            body |= calls.with_entities("caption", reply.caption)
            body["pictures"] = [
                {"type": "image/png", "data": base64.b64encode(each.png).decode()}
                for each in reply.pictures
            ]
        return respond(resp, body)


@dataclass(frozen=True)
class Inline:
    """Inline queries that a gateway forwards."""

    settings: Settings
    bot: Bot
    delivery: ApiDelivery | None

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answer one query; with DELIVERY=api by a call too, as the gateway sends nothing on."""
        demand(self.settings.gateway_secrets, *credentials(req))
        query = read_gateway_query(read_object(req))
        if query is None:
            raise falcon.HTTPBadRequest(title="inline_query_id and query must be given as text")
        call = calls.answer_inline_query(query.id, self.bot.results(query))
        if self.delivery:
            self.delivery.make(call)
        respond(resp, gateway(call))


def gateway(call: Json) -> Json:
    """A call as the gateway reads it: its fields, and the text again under `type` and `body`."""
    fields = {name: value for name, value in call.items() if name != "method"}
    return fields | ({"type": "text", "body": call["text"]} if "text" in call else EMPTY)
