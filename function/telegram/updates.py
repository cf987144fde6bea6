"""Reads updates: who asks this bot for what.

JSON of any shape is read without raising. Facts are from the Bot API's pages
(https://core.telegram.org/bots/api, /bots/features) and from the server's source (tdlib).
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from function.telegram.program_text import Span, code_spans, find_program, split_stdin
from function.telegram.types import Action, Address, Identity, InlineQuery, Json, Request

# They show `is_bot` for people: GroupAnonymousBot for hidden admins, Channel_Bot for channels.
STAND_INS = frozenset({1087968824, 136817688})
QUERY_CHARACTERS = 256
PYTHON_FILES = ("text/x-python", "text/x-script.python", "application/x-python-code")
MEDIA = (
    *("animation", "audio", "contact", "dice", "document", "game", "live_photo", "location"),
    *("paid_media", "photo", "poll", "sticker", "story", "venue", "video", "video_note", "voice"),
)

_COMMAND = re.compile(r"\s*/([A-Za-z]\w*)(?:@(\w+))?(?![\w@/])", re.ASCII)
_NOT_CONVERSATION = re.compile(r"[\d(\[{=+*/%<>]|\w\.\w")

COMMANDS: tuple[Action, ...] = ("start", "help", "mode", "privacy")


class _Content(NamedTuple):
    """What of a message may be a program: a Python file's id, and the text with its code."""

    file_id: str
    text: str
    spans: list[Span]


def read_update(update: Json, me: Identity, max_characters: int) -> Request | InlineQuery | None:
    """What an update asks of this bot; None for everything that is not for it.

    Of a text no more than `max_characters` are looked at: a longer one is no program.
    """
    if "message" in update:
        return read_message(update["message"], me, max_characters)
    if "edited_message" in update:
        return read_message(update["edited_message"], me, max_characters, edited=True)
    return _inline_query(_object(update.get("inline_query")))


def read_gateway_query(body: Json) -> InlineQuery | None:
    """The inline query that a gateway forwards: {"from_user_id", "inline_query_id", "query"}."""
    user = {"id": body.get("from_user_id")}
    query = {"id": body.get("inline_query_id"), "from": user, "query": body.get("query")}
    return _inline_query(query)


def read_message(
    value: object, me: Identity, max_characters: int, *, edited: bool = False
) -> Request | None:
    """What a message asks of this bot.

    In a private chat every message is meant for the bot; elsewhere a command, the bot's name at
    either end, or a reply to one of its messages. Other bots and inline results are never answered.
    """
    message = _object(value)
    address = _address(message)
    if address is None or _written_by_bot(message):
        return None
    ask = partial(Request, address, _user(message, address), edited=edited)
    content = _content(message, max_characters)
    replied = _replied_to(message)
    replies_to_bot = _is_this_bot(_object(replied.get("from")), me)
    text = content.text
    if not text:
        if found := (address.private or replies_to_bot) and _program(content):
            return ask(*found)
        has_media = address.private and any(message.get(kind) for kind in MEDIA)
        return ask("no_text") if has_media else None
    begin, end = _without_name(text, me)
    mentioned = (begin, end) != (0, len(text))
    command = _COMMAND.match(text, begin, end)
    if command:
        name, addressee = command[1].lower(), (command[2] or "").lower()
        ours = not addressee or me.username in (None, addressee)
        for action in COMMANDS if ours else ():
            if action == name:
                return ask(action, text[command.end() : end].strip())
        if not ours or name != "cl":
            heard = address.private or mentioned or bool(addressee and ours)
            return ask("unknown_command") if heard else None
        begin = command.end()
    elif not (address.private or mentioned or replies_to_bot):
        return None
    if len(text) > max_characters:
        return ask("too_long")
    is_bare = not (command or mentioned)
    if is_bare and not (address.private or content.spans or _NOT_CONVERSATION.search(text)):
        return ask("reply", typed=text)  # "thanks!" in a group
    found = _program(content, begin, end)
    if not found and (command or mentioned) and not _written_by_bot(replied):
        quote = {"text": _object(message.get("quote")).get("text")}
        found = _program(_content(quote if quote["text"] else replied, max_characters))
    action, source, stdin = found or ("usage", "", None)
    marks_code = bool(content.spans or (found and source.split() != text.split()))
    is_answer = is_bare and (replies_to_bot or not marks_code)
    return ask(action, source, stdin, text if is_answer else "")


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    """An identifier: an integer of at most 52 bits; true and false are none."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 52:
        return value
    return None


def _inline_query(query: Json) -> InlineQuery | None:
    query_id, text = query.get("id"), query.get("query")
    query_id = str(query_id) if _number(query_id) is not None else query_id
    if not isinstance(query_id, str) or not query_id or not isinstance(text, str):
        return None
    user = _number(_object(query.get("from")).get("id")) or 0
    text = text if len(text) <= QUERY_CHARACTERS else ""
    return InlineQuery(query_id, user, text, _text(query.get("offset")))


def _address(message: Json) -> Address | None:
    chat = _object(message.get("chat"))
    chat_id = _number(chat.get("id"))
    if chat_id is None:
        return None
    # Reply chains of plain groups carry a thread id too, and sending that one back fails.
    topic = message.get("message_thread_id") if message.get("is_topic_message") is True else None
    message_id = _number(message.get("message_id")) or None  # 0 marks one that cannot be replied to
    return Address(chat_id, message_id, _number(topic), chat.get("type") == "private")


def _user(message: Json, address: Address) -> int:
    """Whose limits count: one person's many channels share those of the chat they post in."""
    number = _number(_object(message.get("from")).get("id"))
    return address.chat_id if number is None or number in STAND_INS else number


def _written_by_bot(message: Json) -> bool:
    author = _object(message.get("from"))
    robot = author.get("is_bot") is True and _number(author.get("id")) not in STAND_INS
    return robot or bool(message.get("via_bot"))


def _content(message: Json, max_characters: int) -> _Content:
    document = _object(message.get("document"))
    named = _text(document.get("file_name")).lower().endswith(".py")
    is_python = named or document.get("mime_type") in PYTHON_FILES
    file_id = _text(document.get("file_id")) if is_python else ""
    for key, entities in (("text", "entities"), ("caption", "caption_entities")):
        if text := _text(message.get(key))[: max_characters + 1]:
            return _Content(file_id, text, code_spans(text, _entities(message.get(entities))))
    return _Content(file_id, "", [])


def _entities(value: object) -> Iterator[tuple[str, int, int]]:
    for entity in map(_object, value if isinstance(value, list) else []):
        offset, length = _number(entity.get("offset")), _number(entity.get("length"))
        if offset is not None and length is not None:
            yield _text(entity.get("type")), offset, length


def _without_name(text: str, me: Identity) -> tuple[int, int]:
    """Where the text begins and ends when the bot's name is taken from its beginning or its end."""
    if not me.username or "@" not in text:
        return 0, len(text)
    name = re.escape(me.username)
    # Emoji may stand before it: they are neither letters nor ASCII.
    if leading := re.match(rf"[^\w!-~]*@{name}(?!\w)[\s,:]*", text, re.IGNORECASE):
        return leading.end(), len(text)
    if trailing := re.search(rf"(?<!\S)@{name}\s*\Z", text, re.IGNORECASE):
        return 0, trailing.start()
    return 0, len(text)


def _replied_to(message: Json) -> Json:
    """The message that this one replies to.

    In a forum topic that is the topic's first service message unless a person chose another.
    """
    replied = _object(message.get("reply_to_message"))
    return {} if "forum_topic_created" in replied else replied


def _is_this_bot(author: Json, me: Identity) -> bool:
    if me.id is not None and author.get("id") == me.id:
        return True
    return me.username is not None and _text(author.get("username")).lower() == me.username


def _program(
    content: _Content, begin: int = 0, end: int | None = None
) -> tuple[Action, str, str | None] | None:
    """The Python file, or else the program in this part of the text; see Request."""
    if content.file_id:
        return "document", content.file_id, None
    end, stdin = split_stdin(content.text, begin, len(content.text) if end is None else end)
    source = find_program(content.text, content.spans, begin, end)
    return ("run", source, stdin) if source else None
