"""The HTTP side: /webhook for Telegram, /message and /inline for a gateway, /test and /health.

Telegram repeats an update that is not answered with 2xx for up to a day, and holds back its chat
meanwhile (https://core.telegram.org/bots/api#setwebhook); so whatever is not understood is taken
quietly, and a mistake of ours is logged and taken too.
"""

import contextlib
import hmac
import json
import logging
import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import falcon

from function.answers import replies
from function.answers.replies import Reply, say
from function.bot import Busy, Chat
from function.delivery.delivery import Delivery
from function.errors import Undelivered
from function.settings import Settings
from function.state import Store
from function.telegram import bot_api as telegram
from function.telegram.bot_api import Json
from sandbox import PolicyWatch, Sandbox

log = logging.getLogger(__name__)

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # nosec B105: the header's name
DISCARDED_BYTES = 8 << 20  # of a body that is refused
BODY_BYTES = 1 << 20  # of the server's own responses too; updates are far smaller


class Webhook:
    """Updates from Telegram."""

    def __init__(self, settings: Settings, answer: Callable[[Json], Json | None]) -> None:
        self._secrets = tuple(filter(None, [settings.webhook_secret]))
        self._answer = answer

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take one update (https://core.telegram.org/bots/api#update).

        Request: a JSON object with an integer `update_id`. With a secret configured, the header
        X-Telegram-Bot-Api-Secret-Token must hold it.

        Response: a Bot API call (`method` and its parameters), or nothing.

        200 answered: by the response, or with DELIVERY=api by calls that are done, or will be when
        Telegram can be reached; 400 no JSON object, or no `update_id`; 401 wrong secret; 413 more
        than 1 MiB; 415 not application/json; 503 with Retry-After: too many programs now.
        """
        _demand(self._secrets, req.get_header(SECRET_HEADER))
        update = _read_object(req)
        if not isinstance(update.get("update_id"), int) or isinstance(update["update_id"], bool):
            raise falcon.HTTPBadRequest(title="update_id must be an integer")
        call = _unless_busy(self._answer, update)
        if call is not None:
            _respond(resp, call)


class Message:
    """Messages that a gateway forwards, and whose answers it sends on."""

    def __init__(self, settings: Settings, chat: Chat) -> None:
        self._secrets = settings.gateway_secrets
        self._chat = chat

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Take one message (https://core.telegram.org/bots/api#message).

        Request: a JSON object. With WEBHOOK_SECRET configured, Authorization must be `Bearer` and
        the secret or the bot's token.

        Response: `{"type": "text", "body": TEXT}` with the parameters of sendMessage beside, or
        `{"type": "empty", "body": ""}` where there is nothing to say.

        200 taken; 400, 401, 413, 415 as for updates.
        """
        _demand(self._secrets, *_gateway_credentials(req))
        request = telegram.read_message(_read_object(req), self._chat.bot)
        if request is None:
            return _respond(resp, replies.EMPTY)
        try:
            reply = self._chat.reply(request)
        except Busy as busy:
            reply = busy.reply
        except Undelivered:
            reply = Reply(say("Telegram does not give me the file now. Try again in a moment."))
        return _respond(resp, replies.gateway(telegram.send_message(request.place, reply.message)))


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

        200 taken; 400, 401, 413, 415 as for messages; 503 as for updates.
        """
        _demand(self._secrets, *_gateway_credentials(req))
        query = telegram.read_gateway_query(_read_object(req))
        if query is None:
            raise falcon.HTTPBadRequest(title="inline_query_id and query must be given as text")
        call = _unless_busy(self._chat.results, query)
        if self._delivery:
            _unless_busy(self._delivery.make, call)
        _respond(resp, replies.gateway(call))


class Test:
    """Whether the service runs at all."""

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Answer 200 with {"status": "ok"}."""
        _respond(resp, {"status": "ok"})


class Health:
    """What is in force, and whether programs can be run."""

    def __init__(self, sandbox: Sandbox, store: Store, watch: PolicyWatch | None) -> None:
        self._sandbox = sandbox
        self._store = store
        self._watch = watch

    def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
        """Report the policy, the sandbox's layers, probes and counts, and more; no secret.

        `policy.reloads` counts edits, `policy.refused` says why the file as it stands now is not
        in force; `sandbox.guests` counts prepared and running programs, `sandbox.zygote.restarts`
        processes that died.

        200 programs can be run; 503 they cannot.
        """
        policy, state = self._sandbox.policy, self._sandbox.status()
        in_file = self._watch.status() if self._watch else {}
        serving = bool(state.get("serving"))
        resp.status = falcon.HTTP_200 if serving else falcon.HTTP_503
        _respond(
            resp,
            {
                "status": "ok" if serving else "failing",
                "policy": {"path": str(policy.path), "sha256": policy.sha256} | in_file,
                "sandbox": state,
                "store": self._store.status(),
                "versions": {
                    "python": platform.python_version(),
                    "kernel": platform.release(),
                    "falcon": version("falcon"),
                    "gunicorn": version("gunicorn"),
                },
            },
        )


def write_error(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    """Say what is wrong in one line: {"error": TEXT}."""
    # gunicorn drops a connection of which much is unread, after it has promised to keep it.
    with contextlib.suppress(OSError, falcon.HTTPError):
        if (req.content_length or 0) <= DISCARDED_BYTES:
            req.bounded_stream.exhaust()
    _respond(resp, {"error": error.title or error.status})


def take_quietly(
    req: falcon.Request, resp: falcon.Response, error: Exception, _params: object
) -> None:
    """Log a mistake of ours and take what caused it, lest it be repeated for a day."""
    log.error("%s %s failed", req.method, req.path, exc_info=error)
    if req.method == "POST":
        resp.status = falcon.HTTP_200
        return _respond(resp, replies.EMPTY)
    resp.status = falcon.HTTP_503
    return _respond(resp, {"error": "this failed; the log says why"})


def _demand(accepted: tuple[str, ...], *offered: str | None) -> None:
    """Raise 401 unless nothing is demanded or one of the offered secrets is accepted."""
    matches = [
        hmac.compare_digest(secret.encode(), offer.encode(errors="replace"))
        for secret in accepted
        for offer in offered
        if offer
    ]
    if accepted and not any(matches):
        raise falcon.HTTPUnauthorized(title="the secret is missing or wrong")


def _gateway_credentials(req: falcon.Request) -> tuple[str | None, ...]:
    scheme, _, credentials = (req.auth or "").strip().rpartition(" ")
    bearer = credentials if scheme.lower() in ("", "bearer") else None
    return bearer, req.get_header(SECRET_HEADER)


def _read_object(req: falcon.Request) -> Json:
    """The body, a JSON object in UTF-8. Raises the HTTP error that fits any other."""
    if (req.content_type or "").partition(";")[0].strip().lower() != falcon.MEDIA_JSON:
        raise falcon.HTTPUnsupportedMediaType(title="Content-Type must be application/json")
    if (req.content_length or 0) > BODY_BYTES:
        raise falcon.HTTPContentTooLarge(title=f"the body is longer than {BODY_BYTES} bytes")
    try:
        body = json.loads(req.bounded_stream.read().decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError, OSError):
        raise falcon.HTTPBadRequest(title="the body is not JSON in UTF-8") from None
    if not isinstance(body, dict):
        raise falcon.HTTPBadRequest(title="the body is no JSON object")
    return body


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _unless_busy(work: Callable[[Any], Json | None], asked: Any) -> Any:
    """Do work, or raise 503 with the time to try again."""
    try:
        return work(asked)
    except Busy as busy:
        raise falcon.HTTPServiceUnavailable(title=str(busy), retry_after=busy.retry_after) from None


def _respond(resp: falcon.Response, body: Json) -> None:
    resp.content_type = falcon.MEDIA_JSON
    resp.data = json.dumps(body).encode()
