"""A Bot API server on loopback, as strict as the real one and as moody.

The rules are those of https://core.telegram.org/bots/api and of the server's own source: tdlib/td
(misc.cpp, MessageEntity.cpp, MessageContent.cpp) and tdlib/telegram-bot-api (Client.cpp,
WebhookActor.cpp). `problems` states them as a plain function, for any call by any way.
"""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]

TEXT_CHARACTERS = 4096
CAPTION_CHARACTERS = 1024
PARSED_BYTES = 32768
CALL_BYTES = 1 << 20
_ENTITY_TYPES = (
    "mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough"
    " spoiler blockquote expandable_blockquote code pre text_link text_mention custom_emoji"
)
_UPDATE_KINDS = (
    "message edited_message channel_post edited_channel_post business_connection business_message"
    " edited_business_message deleted_business_messages message_reaction message_reaction_count"
    " inline_query chosen_inline_result callback_query shipping_query pre_checkout_query"
    " purchased_paid_media poll poll_answer my_chat_member chat_member chat_join_request chat_boost"
    " removed_chat_boost guest_message"
)
ENTITY_TYPES = frozenset(_ENTITY_TYPES.split())
UPDATE_KINDS = frozenset(_UPDATE_KINDS.split())

# Every parameter that the tests' calls may have, by method: what the server reads it as.
_TO = {"chat_id": "chat", "message_thread_id": "id", "reply_parameters": "reply"}
_TO |= {"disable_notification": "bool", "protect_content": "bool", "reply_markup": "object"}
_TEXT = {"text": "text", "entities": "entities", "parse_mode": "parse_mode"}
_TEXT |= {"link_preview_options": "object"}
METHODS: dict[str, dict[str, str]] = {
    "sendMessage": _TO | _TEXT,
    "editMessageText": {"chat_id": "chat", "message_id": "id", "inline_message_id": "string"}
    | {"reply_markup": "object"}
    | _TEXT,
    "sendDocument": _TO
    | {"document": "file", "caption": "caption", "caption_entities": "entities"}
    | {"parse_mode": "parse_mode", "disable_content_type_detection": "bool"},
    "sendPhoto": _TO
    | {"photo": "file", "caption": "caption", "caption_entities": "entities"}
    | {"parse_mode": "parse_mode", "has_spoiler": "bool", "show_caption_above_media": "bool"},
    "sendMediaGroup": _TO | {"media": "album"},
    "editMessageMedia": {"chat_id": "chat", "message_id": "id", "inline_message_id": "string"}
    | {"media": "media", "reply_markup": "object"},
    "sendChatAction": {"chat_id": "chat", "message_thread_id": "id", "action": "string"},
    "answerInlineQuery": {"inline_query_id": "string", "results": "results"}
    | {"cache_time": "count", "is_personal": "bool", "next_offset": "string", "button": "object"},
    "answerCallbackQuery": {"callback_query_id": "string", "text": "string", "show_alert": "bool"},
    "getMe": {},
    "getFile": {"file_id": "string"},
    "getUpdates": {"offset": "integer", "limit": "count", "timeout": "count"}
    | {"allowed_updates": "kinds"},
    "setWebhook": {"url": "url", "secret_token": "secret", "max_connections": "count"}
    | {"allowed_updates": "kinds", "drop_pending_updates": "bool", "ip_address": "string"},
    "deleteWebhook": {"drop_pending_updates": "bool"},
    "getWebhookInfo": {},
    "setMyCommands": {"commands": "commands", "scope": "object", "language_code": "string"},
    "deleteMyCommands": {"scope": "object", "language_code": "string"},
    "getMyCommands": {"scope": "object", "language_code": "string"},
}
REQUIRED = {
    "sendMessage": ("chat_id", "text"),
    "editMessageText": ("text",),
    "sendDocument": ("chat_id", "document"),
    "sendPhoto": ("chat_id", "photo"),
    "sendMediaGroup": ("chat_id", "media"),
    "editMessageMedia": ("media",),
    "answerInlineQuery": ("inline_query_id", "results"),
    "getFile": ("file_id",),
    "setWebhook": ("url",),
    "setMyCommands": ("commands",),
}
ENTITIES_OF = {"text": "entities", "caption": "caption_entities", "message_text": "entities"}
ROOM = {"text": TEXT_CHARACTERS, "message_text": TEXT_CHARACTERS, "caption": CAPTION_CHARACTERS}

# misc.cpp, clean_input_string: these become a space, those vanish.
_SPACED = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f]")
_DROPPED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
# misc.cpp, is_empty_string: what does not count as text.
_INVISIBLE = re.compile(
    "[ \n\u00a0\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]*"
)


def problems(method: str, params: Json, files: tuple[str, ...] = ()) -> list[str]:
    """Return why the server would refuse a call, or change what it shows; [] if it would not.

    `params` are as in a JSON body, without `method`; `files` names parameters that are uploads.
    """
    if method not in METHODS:
        return [f"{method}: no such method"]
    found = [f"{path} is null" for path in _nulls(params, method)]
    if len(json.dumps(params, ensure_ascii=False).encode("utf-8", "replace")) > CALL_BYTES:
        found.append("the call is longer than 1 MiB")
    required = set(REQUIRED.get(method, ()))
    found += [f"{name} is missing" for name in required - params.keys() - set(files)]
    for name, value in params.items():
        if name not in METHODS[method]:
            found.append(f"{method} has no parameter {name}")
        elif value is not None:
            found += [
                f"{name}: {text}" for text in _parameter(METHODS[method][name], value, params)
            ]
    attached = set(re.findall(r'"attach://([^"]*)"', json.dumps(params)))
    uploads = {name for name in files if METHODS[method].get(name) != "file"}
    found += [f"{name} is not attached once" for name in attached ^ uploads]
    if method in ("editMessageText", "editMessageMedia") and not (
        {"chat_id", "message_id"} <= params.keys()
    ):
        found.append("chat_id and message_id are missing")
    return found


def webhook_problems(reply: Any) -> list[str]:
    """The same for a call that is the response to an update; {} and nothing are no call."""
    if reply in (None, {}, ""):
        return []
    if not isinstance(reply, dict) or not isinstance(reply.get("method"), str):
        return ["the response is no call"]
    method = reply["method"]
    if method.lower().startswith("get") or method in (
        *("setWebhook", "deleteWebhook", "close", "logOut"),
    ):
        return [f"{method} is not done in a response"]
    return problems(method, {name: value for name, value in reply.items() if name != "method"})


def shown(text: str, *, protected: bool = False) -> str:
    """Return a text as people will see it; `protected` if an entity begins where it does."""
    cleaned = _DROPPED.sub("", _SPACED.sub(" ", text))
    return cleaned.rstrip(" \n") if protected else cleaned.strip(" \n")


def utf16_length(text: str) -> int:
    """Return the length in the units of entities."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _nulls(value: Any, path: str) -> Iterator[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in items:
        if member is None:
            yield f"{path}.{name}"
        elif isinstance(member, dict | list):
            yield from _nulls(member, f"{path}.{name}")


def _parameter(kind: str, value: Any, params: Json) -> list[str]:
    return _KINDS[kind](value, params)


def _text_of(name: str) -> Callable[[Any, Json], list[str]]:
    def check(value: Any, params: Json) -> list[str]:
        return _text(value, params.get(ENTITIES_OF[name]), ROOM[name])

    return check


def _text(value: Any, entities: Any, room: int) -> list[str]:
    if not isinstance(value, str):
        return ["not a text"]
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return ["strings must be encoded in UTF-8"]
    if size > PARSED_BYTES:
        return ["text is too long"]
    listed = entities if isinstance(entities, list) else []
    protected = any(isinstance(one, dict) and one.get("offset") == 0 for one in listed)
    seen = shown(value, protected=protected)
    found = []
    if _INVISIBLE.fullmatch(seen):
        found.append("text must be non-empty")
    if len(seen) > room:
        found.append("message is too long" if room == TEXT_CHARACTERS else "caption is too long")
    if _SPACED.search(value):
        found.append("control characters will be shown as spaces")
    if _DROPPED.search(value):
        found.append("characters will be dropped, and entities moved")
    return found


def _media(value: Any, _: Json) -> list[str]:
    """A photo or document that is uploaded with the call (#inputmediaphoto)."""
    if not isinstance(value, dict) or value.get("type") not in ("photo", "document"):
        return ["is no photo and no document"]
    known = {"type": "string", "media": "string", "caption": "caption"}
    known |= {"caption_entities": "entities"}
    found = [f"media has no {name}" for name in value.keys() - known]
    if not str(value.get("media")).startswith("attach://"):
        found.append("media is not attached")
    return found + [text for name in value for text in _parameter(known[name], value[name], value)]


def _album(value: Any, params: Json) -> list[str]:
    if not isinstance(value, list) or not 2 <= len(value) <= 10:
        return ["an album has 2 to 10 media"]
    if len({one.get("type") for one in value}) > 1:
        return ["documents can be grouped only with documents"]
    return [text for one in value for text in _media(one, params)]


def _entities(value: Any, params: Json) -> list[str]:
    text = next((params[name] for name in ENTITIES_OF if isinstance(params.get(name), str)), "")
    if not isinstance(value, list):
        return ["not a list"]
    found: list[str] = []
    spans: list[tuple[int, int, str]] = []
    for entity in value:
        if not isinstance(entity, dict) or entity.get("type") not in ENTITY_TYPES:
            found.append(f"can't parse entities: {entity!r} has no known type")
            continue
        offset, length = entity.get("offset"), entity.get("length")
        if not _is_int(offset) or not _is_int(length) or offset < 0 or length <= 0:
            found.append(
                "can't parse entities: offset and length must be integers, length positive"
            )
            continue
        found += _edges(text, offset, length)
        spans.append((offset, offset + length, entity["type"]))
        allowed = {"type", "offset", "length"}
        allowed |= {"pre": {"language"}, "text_link": {"url"}}.get(entity["type"], set())
        found += [f"an entity has no {name}" for name in entity.keys() - allowed]
    spans.sort()
    for (_, end, kind), (start, _, other) in pairwise(spans):
        if start < end and {kind, other} & {"pre", "code"}:
            found.append(f"{other} overlaps {kind}")
    return found


def _edges(text: str, offset: int, length: int) -> list[str]:
    encoded = text.encode("utf-16-le", "surrogatepass")
    if (offset + length) * 2 > len(encoded):
        return ["ENTITY_BOUNDS_INVALID: an entity ends after the end of the text"]
    for edge in (offset, offset + length):
        unit = encoded[edge * 2 : edge * 2 + 2]
        if unit and 0xDC00 <= int.from_bytes(unit, "little") <= 0xDFFF:
            return ["ENTITY_BOUNDS_INVALID: an entity's edge is within a character"]
    return []


def _results(value: Any, _: Json) -> list[str]:
    if not isinstance(value, list) or len(value) > 50:
        return ["not a list of at most 50"]
    found, ids = [], []
    for result in value:
        if not isinstance(result, dict) or result.get("type") != "article":
            found.append("RESULT_TYPE_INVALID")
            continue
        ids.append(result.get("id"))
        if not isinstance(ids[-1], str) or not 1 <= len(ids[-1].encode()) <= 64:
            found.append("RESULT_ID_INVALID")
        title = result.get("title")
        if not isinstance(title, str) or _INVISIBLE.fullmatch(shown(title)):
            found.append("ARTICLE_TITLE_EMPTY")
        content = result.get("input_message_content")
        if not isinstance(content, dict) or "message_text" not in content:
            found.append("MESSAGE_EMPTY")
            continue
        found += _text(content["message_text"], content.get("entities"), TEXT_CHARACTERS)
        found += _entities(content.get("entities", []), content)
        known = {"message_text", "entities", "parse_mode", "link_preview_options"}
        found += [f"input_message_content has no {name}" for name in content.keys() - known]
        known = {
            "type",
            "id",
            "title",
            "description",
            "input_message_content",
            "url",
            "reply_markup",
        }
        found += [f"a result has no {name}" for name in result.keys() - known]
    if len(set(map(str, ids))) < len(ids):
        found.append("RESULT_ID_DUPLICATE")
    return found


def _reply(value: Any, _: Json) -> list[str]:
    if not isinstance(value, dict):
        return ["Object expected as reply parameters"]
    found = (
        [] if _is_int(value.get("message_id")) and value["message_id"] > 0 else ["no message_id"]
    )
    known = {"message_id", "chat_id", "allow_sending_without_reply", "quote", "quote_position"}
    return found + [f"reply_parameters has no {name}" for name in value.keys() - known]


def _commands(value: Any, _: Json) -> list[str]:
    if not isinstance(value, list) or not 0 < len(value) <= 100:
        return ["not a list of at most 100"]
    found = []
    for command in value:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command.get("command", "")):
            found.append("BOT_COMMAND_INVALID")
        if not 1 <= len(command.get("description", "")) <= 256:
            found.append("BOT_COMMAND_DESCRIPTION_INVALID")
    return found


def _chat(value: Any, _: Json) -> list[str]:
    if isinstance(value, str) and re.fullmatch(r"@\w{5,32}|-?\d+", value):
        return []
    return [] if _is_int(value) and value and abs(value) < 1 << 52 else ["chat not found"]


def _url(value: Any, _: Json) -> list[str]:
    parts = urlsplit(value)
    if parts.scheme != "https":
        return ["bad webhook: An HTTPS URL must be provided for webhook"]
    if (parts.port or 443) not in (443, 80, 88, 8443):
        return ["bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"]
    return []


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(accepted: Callable[[Any], bool], text: str) -> Callable[[Any, Json], list[str]]:
    return lambda value, _: [] if accepted(value) else [text]


_KINDS: dict[str, Callable[[Any, Json], list[str]]] = {
    "album": _album,
    "media": _media,
    "text": _text_of("text"),
    "caption": _text_of("caption"),
    "entities": _entities,
    "results": _results,
    "reply": _reply,
    "commands": _commands,
    "chat": _chat,
    "url": _url,
    "parse_mode": _kind(lambda value: value in ("HTML", "Markdown", "MarkdownV2"), "unsupported"),
    "id": _kind(lambda value: _is_int(value) and 0 < value < 1 << 31, "not a positive integer"),
    "integer": _kind(_is_int, "not an integer"),
    "count": _kind(lambda value: _is_int(value) and value >= 0, "not a count"),
    "bool": _kind(lambda value: isinstance(value, bool), "not true or false"),
    "string": _kind(lambda value: isinstance(value, str) and value != "", "not a text"),
    "object": _kind(lambda value: isinstance(value, dict), "Object expected"),
    "file": _kind(lambda value: isinstance(value, str) and value != "", "no file"),
    "secret": _kind(
        lambda value: re.fullmatch(r"[A-Za-z0-9_-]{1,256}", str(value)) is not None, "not allowed"
    ),
    "kinds": _kind(
        lambda value: isinstance(value, list) and set(value) <= set(UPDATE_KINDS), "unknown kind"
    ),
}


@dataclass
class Call:
    """A call that came in: its parameters, and the uploads by parameter."""

    method: str
    params: Json
    files: dict[str, tuple[str, bytes]]


@dataclass
class BotApiServer:
    """The server's state, and how it will behave; change it at any time.

    `moods` are taken one a call, by method or for "*": a status with description and parameters,
    None for none, seconds to be slow, "hang" (no answer while the server runs), "drop" (the
    connection is cut before the call is done), "lose" (after), or "garble" (no JSON).
    """

    token: str = "7100000001:AAfixture-token_0123456789abcdefghi"
    username: str = "pycalc_demo_bot"
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    sent: list[Json] = field(default_factory=list)  # messages, as edited since
    said: list[str] = field(default_factory=list)  # every text that was sent or edited in
    moods: dict[str, deque[Any]] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    migrated: dict[int, int] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    updates: list[Json] = field(default_factory=list)
    webhook: Json = field(default_factory=dict)
    commands: dict[str, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    stopped: threading.Event = field(default_factory=threading.Event)

    def be(self, method: str, *moods: Any) -> None:
        """Behave so in the next calls of a method."""
        self.moods.setdefault(method, deque()).extend(moods)

    def made(self, method: str) -> list[Json]:
        """Return the parameters of all calls of a method so far."""
        with self.lock:
            return [call.params for call in self.calls if call.method == method]

    def take(self, call: Call) -> tuple[int, Json]:
        """Do a call; returns status and answer."""
        with self.lock:
            self.calls.append(call)
            wrong = problems(call.method, call.params, tuple(call.files))
            if wrong:
                return _error(400, "Bad Request: " + "; ".join(wrong))
            chat = call.params.get("chat_id")
            if chat in self.blocked:
                return _error(403, "Forbidden: bot was blocked by the user")
            if chat in self.migrated:
                text = "Bad Request: group chat was upgraded to a supergroup chat"
                return _error(400, text, {"migrate_to_chat_id": self.migrated[chat]})
            do = getattr(self, f"_{call.method}", None)
            return do(call) if do else (200, {"ok": True, "result": True})

    def _sendMessage(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        message = {**call.params, "message_id": len(self.sent) + 1, "date": int(time.time())}
        message["chat"] = {"id": call.params["chat_id"], "type": "private"}
        self.sent.append(message)
        self.said.append(message.get("text", ""))
        return 200, {"ok": True, "result": message}

    _sendDocument = _sendPhoto = _sendMessage  # noqa: N815

    def _sendMediaGroup(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        sent = [self._sendMessage(call)[1]["result"] for _ in call.params["media"]]
        return 200, {"ok": True, "result": sent}

    def _editMessageMedia(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        number = call.params["message_id"]
        if number > len(self.sent):
            return _error(400, "Bad Request: message to edit not found")
        return 200, {"ok": True, "result": self.sent[number - 1] | call.params["media"]}

    def _editMessageText(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        number = call.params["message_id"]
        if number > len(self.sent):
            return _error(400, "Bad Request: message to edit not found")
        old = self.sent[number - 1]
        if old["text"] == call.params["text"] and old.get("entities") == call.params.get(
            "entities"
        ):
            return _error(400, "Bad Request: message is not modified: specified new message ...")
        self.said.append(call.params["text"])
        old |= {"text": call.params["text"], "entities": call.params.get("entities")}
        return 200, {"ok": True, "result": old}

    def _getMe(self, _: Call) -> tuple[int, Json]:  # noqa: N802
        number = int(self.token.partition(":")[0])
        me = {"id": number, "is_bot": True, "first_name": "Calc", "username": self.username}
        return 200, {"ok": True, "result": me}

    def _getFile(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        file_id = call.params["file_id"]
        if file_id not in self.files:
            return _error(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        path = {"file_id": file_id, "file_path": f"documents/{file_id}"}
        return 200, {"ok": True, "result": path}

    def _getUpdates(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        if self.webhook.get("url"):
            text = "Conflict: can't use getUpdates method while webhook is active"
            return _error(409, text)
        offset = call.params.get("offset", 0)
        if offset > 0:
            self.updates = [one for one in self.updates if one["update_id"] >= offset]
        return 200, {"ok": True, "result": self.updates[: call.params.get("limit", 100)]}

    def _setWebhook(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        self.webhook = dict(call.params)
        return 200, {"ok": True, "result": True, "description": "Webhook was set"}

    def _deleteWebhook(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        self.webhook = {}
        if call.params.get("drop_pending_updates"):
            self.updates = []
        return 200, {"ok": True, "result": True, "description": "Webhook was deleted"}

    def _getWebhookInfo(self, _: Call) -> tuple[int, Json]:  # noqa: N802
        info = {name: self.webhook[name] for name in self.webhook if name != "secret_token"}
        info |= {"url": self.webhook.get("url", ""), "has_custom_certificate": False}
        return 200, {"ok": True, "result": info | {"pending_update_count": len(self.updates)}}

    def _setMyCommands(self, call: Call) -> tuple[int, Json]:  # noqa: N802
        scope = call.params.get("scope", {}).get("type", "default")
        self.commands[scope] = call.params["commands"]
        return 200, {"ok": True, "result": True}


def _error(code: int, description: str, parameters: Json | None = None) -> tuple[int, Json]:
    answer: Json = {"ok": False, "error_code": code, "description": description}
    return code, answer | ({"parameters": parameters} if parameters else {})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: BotApiServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith(prefix := f"/file/bot{self.state.token}/documents/"):
            content = self.state.files.get(self.path.removeprefix(prefix))
            return self._send(200 if content is not None else 404, content or b"")
        return self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = re.fullmatch(r"/bot([^/]+)/(\w+)", urlsplit(self.path).path)
        if not path or path[1] != self.state.token:
            return self._answer(*_error(401 if path else 404, "Unauthorized"))
        call = Call(path[2], *read_body(self.headers["Content-Type"] or "", body))
        for name in (call.method, "*"):
            if self.state.moods.get(name):
                mood = self.state.moods[name].popleft()
                break
        else:
            mood = None
        match mood:
            case (int() as code, str() as description, *parameters):
                with self.state.lock:
                    self.state.calls.append(call)
                return self._answer(*_error(code, description, *parameters))
            case "hang":
                self.state.stopped.wait()
                return self._cut()
            case "drop":
                return self._cut()
            case "lose":
                self.state.take(call)
                return self._cut()
            case "garble":
                return self._send(502, b"<html>Bad Gateway</html>")
            case int() | float() as seconds:
                time.sleep(seconds)
        status, answer = self.state.take(call)
        if call.method == "getUpdates" and answer.get("result") == []:
            time.sleep(min(0.05, call.params.get("timeout", 0)))
        return self._answer(status, answer)

    def _answer(self, status: int, answer: Json) -> None:
        self._send(status, json.dumps(answer).encode())

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.close()


def read_body(content_type: str, body: bytes) -> tuple[Json, dict[str, tuple[str, bytes]]]:
    """Read a call's parameters as the server does: in a form, values that are JSON are text."""
    kind = content_type.partition(";")[0].strip()
    if kind == "application/json":
        return json.loads(body or b"{}"), {}
    if kind != "multipart/form-data":
        return {}, {}
    message = BytesParser(policy=HTTP).parsebytes(
        f"Content-Type: {content_type}\r\n\r\n".encode() + body
    )
    params: Json = {}
    files = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if part.get_filename() is not None:
            files[name] = part.get_filename(), content
        elif name == "method" or METHODS["sendDocument"].get(name) in ("caption", "parse_mode"):
            params[name] = content.decode()
        else:
            params[name] = json.loads(content)
    return params, files


@contextmanager
def running(**settings: Any) -> Iterator[BotApiServer]:
    """Give a running server."""
    state = BotApiServer(**settings)
    handler = type("Handler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()
