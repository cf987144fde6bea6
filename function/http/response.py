"""What a route responds: JSON, or the status that fits what went wrong, all chosen here."""

import json
import logging
import random

import falcon

from function.errors import Busy, Undelivered
from function.http.request import discard_body
from function.observability import events
from function.telegram.types import Json

log = logging.getLogger(__name__)

EMPTY: Json = {"type": "empty", "body": ""}

App = falcon.App[falcon.Request, falcon.Response]


def respond(resp: falcon.Response, body: Json) -> None:
    """Respond with a JSON object, falcon's default type."""
    resp.data = json.dumps(body).encode()


def add_error_handlers(app: App) -> None:
    """Give every exception its status and one line, {"error": TEXT}.

    503 with Retry-After for Busy, the HTTP error's own status, and 200 for a mistake of ours.
    """
    app.set_error_serializer(_write_error)
    app.add_error_handler(Exception, _accept_quietly)
    app.add_error_handler(Busy, _ask_to_come_again)
    app.add_error_handler(Undelivered, _ask_to_come_again)


def _ask_to_come_again(
    _req: falcon.Request, _resp: falcon.Response, error: Busy | Undelivered, _params: object
) -> None:
    raise falcon.HTTPServiceUnavailable(title=str(error), retry_after=error.retry_after)


def _write_error(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    discard_body(req)
    reason = error.title or error.status
    events.emit("refused", status=error.status_code, path=req.path[:100], reason=reason)
    respond(resp, {"error": reason})


def _accept_quietly(
    req: falcon.Request, resp: falcon.Response, error: Exception, _params: object
) -> None:
    """Log a mistake of ours and accept what caused it, lest Telegram send it for a day."""
    log.error("%s %s failed", req.method, req.path, exc_info=error)
    if req.method == "POST":
        resp.status = falcon.HTTP_200
        return respond(resp, EMPTY)
    resp.status = falcon.HTTP_503
    return respond(resp, {"error": "this failed; the log says why"})


class RequestLog:
    """Falcon middleware: names each request, and counts it by route and status."""

    header = "X-Request-ID"

    def process_request(self, req: falcon.Request, _resp: falcon.Response) -> None:
        """Bind the caller's X-Request-ID, or a new one, to all that this thread does."""
        given = req.get_header(self.header) or ""
        is_plain = given.isascii() and given.isprintable() and " " not in given
        made_up = f"{random.getrandbits(48):012x}"  # nosec B311: a name, no secret
        events.begin(request=given[:64] if is_plain and given else made_up)

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, _resource: object, _succeeded: bool
    ) -> None:
        """Tell the caller the name, and the listeners the status."""
        resp.set_header(self.header, events.bound()["request"])
        route = req.uri_template or "other"
        events.emit("response", logging.DEBUG, route=route, status=resp.status_code)
