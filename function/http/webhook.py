"""POST /webhook: updates from Telegram.

Telegram repeats an update that is not answered with 2xx for up to a day, and holds back its chat
meanwhile (https://core.telegram.org/bots/api#setwebhook); so whatever is not understood is
accepted quietly, and a mistake of ours is logged and accepted too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import falcon

from function.http.request import SECRET_HEADER, demand, read_object
from function.observability import events
from function.settings import Settings
from function.telegram.body import encode
from function.telegram.types import Json


@dataclass(frozen=True)
class Webhook:
    """Updates from Telegram; `answer` returns the call that answers one, if any."""

    settings: Settings
    answer: Callable[[Json], Json | None]

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answer one update: in the response, or by calls of their own with DELIVERY=api."""
        secret = self.settings.webhook_secret
        demand([secret] if secret else [], req.get_header(SECRET_HEADER))
        update = read_object(req)
        if not isinstance(update.get("update_id"), int) or isinstance(update["update_id"], bool):
            raise falcon.HTTPBadRequest(title="update_id must be an integer")
        user = _user(update)
        who = {} if user is None else {"user": events.pseudonym(user, self.settings.token)}
        events.bind(update=update["update_id"], **who)
        if call := self.answer(update):
            resp.data, resp.content_type = encode(call)


def _user(update: Json) -> int | None:
    """The id of whoever caused an update of any kind."""
    for content in update.values():
        sender = content.get("from") if isinstance(content, dict) else None
        if isinstance(sender, dict) and isinstance(sender.get("id"), int):
            return int(sender["id"])
    return None
