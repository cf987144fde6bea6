"""Bot API JSON <-> what the bot works with: who asks for what, and the method calls that answer.

Pure: no I/O, and JSON of any shape is read without raising. Facts are from the Bot API's pages
(https://core.telegram.org/bots/api, /bots/features) and from the server's source (tdlib).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from function.telegram.program_text import Span, code_spans, find_program

Json = dict[str, Any]

# They show `is_bot` for people: GroupAnonymousBot for hidden admins, Channel_Bot for channels.
STAND_INS = frozenset({1087968824, 136817688})
PYTHON_FILES = ("text/x-python", "text/x-script.python", "application/x-python-code")
MEDIA = (
    *("animation", "audio", "contact", "dice", "document", "game", "live_photo", "location"),
    *("paid_media", "photo", "poll", "sticker", "story", "venue", "video", "video_note", "voice"),
)

_COMMAND = re.compile(r"\s*/([A-Za-z]\w*)(?:@(\w+))?(?![\w@/])", re.ASCII)
_NOT_CONVERSATION = re.compile(r"[\d(\[{=+*/%<>]|\w\.\w")

Wish = Literal[
    "run", "document", "start", "help", "mode", "privacy", "usage", "unknown_command", "no_text"
]
COMMANDS: dict[str, Wish] = {
    "start": "start",
    "help": "help",
    "mode": "mode",
    "privacy": "privacy",
}


@dataclass(frozen=True)
class Bot:
    """Who this bot is: its id, and its user name in lower case without the @; None if unknown."""

    id: int | None = None
    username: str | None = None


@dataclass(frozen=True)
class Place:
    """The message to be answered: its chat, its id, and the id of the forum topic it is in."""

    chat_id: int
    message_id: int | None
    thread_id: int | None
    private: bool


@dataclass(frozen=True)
class Request:
    """What a message asks for. `text` is the program, a document's file id, or /mode's argument."""

    place: Place
    sender: int
    wish: Wish
    text: str = ""
    edited: bool = False


@dataclass(frozen=True)
class InlineQuery:
    """One state of a text being typed after the bot's name; `offset` asks for a further page."""

    id: str
    sender: int
    text: str
    offset: str = ""


@dataclass(frozen=True)
class Entity:
    """Formatting of a part of a text; offset and length are in UTF-16 units."""

    type: Literal["pre", "code"]
    offset: int
    length: int


@dataclass(frozen=True)
class Message:
    """A text that Telegram accepts as it is, with its formatting."""

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(frozen=True)
class Article:
    """One inline result: what the list shows, and the message that a tap sends."""

    id: str
    title: str
    description: str
    message: Message


def read_update(update: Json, bot: Bot) -> Request | InlineQuery | None:
    """What an update asks of this bot; None for everything that is not for it."""
    if "message" in update:
        return read_message(update["message"], bot)
    if "edited_message" in update:
        return read_message(update["edited_message"], bot, edited=True)
    query = _object(update.get("inline_query"))
    return _inline_query(
        query.get("id"), query.get("from"), query.get("query"), query.get("offset")
    )


def read_gateway_query(body: Json) -> InlineQuery | None:
    """The inline query that a gateway forwards: {"from_user_id", "inline_query_id", "query"}."""
    sender = {"id": body.get("from_user_id")}
    return _inline_query(body.get("inline_query_id"), sender, body.get("query"), "")


def read_message(value: object, bot: Bot, *, edited: bool = False) -> Request | None:
    """What a message asks of this bot.

    In a private chat every message is meant for the bot; elsewhere a command, the bot's name at
    either end, or a reply to one of its messages. Other bots and inline results are never answered.
    """
    message = _object(value)
    place = _place(message)
    if place is None or _written_by_bot(message):
        return None
    wish, text = _wish(message, bot, place)
    return Request(place, _sender(message, place), wish, text, edited) if wish else None


def send_message(place: Place, message: Message, *, as_reply: bool = False) -> Json:
    """The call that answers at a place; in groups, or where asked, as a reply to the message."""
    call: Json = {"method": "sendMessage", **_where(place, as_reply), **_content(message)}
    return call


def send_document(place: Place, caption: Message, *, as_reply: bool = False) -> Json:
    """The same with a file, which the caller adds as `document`."""
    call = {"method": "sendDocument", **_where(place, as_reply), "caption": caption.text}
    if caption.entities:
        call["caption_entities"] = [vars(entity) for entity in caption.entities]
    return call


def edit_message(chat_id: int, message_id: int, message: Message) -> Json:
    """The call that puts another text into a message of the bot's own."""
    call = {"method": "editMessageText", "chat_id": chat_id, "message_id": message_id}
    return call | _content(message)


def answer_inline_query(query_id: str, articles: Sequence[Article], cache_seconds: int) -> Json:
    """The call that shows results; those not to be kept are shown to the one person alone."""
    return {
        "method": "answerInlineQuery",
        "inline_query_id": query_id,
        "results": [
            {
                "type": "article",
                "id": article.id,
                "title": article.title,
                **({"description": article.description} if article.description else {}),
                "input_message_content": {
                    **_content(article.message, text="message_text"),
                },
            }
            for article in articles
        ],
        "cache_time": cache_seconds,
        "is_personal": cache_seconds == 0,
    }


def _where(place: Place, as_reply: bool) -> Json:
    where: Json = {"chat_id": place.chat_id}
    if place.thread_id is not None:
        where["message_thread_id"] = place.thread_id
    if place.message_id is not None and (as_reply or not place.private):
        target = {"message_id": place.message_id, "allow_sending_without_reply": True}
        where["reply_parameters"] = target
    return where


def _content(message: Message, text: str = "text") -> Json:
    content: Json = {text: message.text, "link_preview_options": {"is_disabled": True}}
    if message.entities:
        content["entities"] = [vars(entity) for entity in message.entities]
    return content


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    """An identifier: an integer of at most 52 bits; true and false are none."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 52:
        return value
    return None


def _inline_query(
    query_id: object, sender: object, text: object, offset: object
) -> InlineQuery | None:
    query_id = str(query_id) if _number(query_id) is not None else query_id
    if not isinstance(query_id, str) or not query_id or not isinstance(text, str):
        return None
    return InlineQuery(query_id, _number(_object(sender).get("id")) or 0, text, _text(offset))


def _place(message: Json) -> Place | None:
    chat = _object(message.get("chat"))
    chat_id = _number(chat.get("id"))
    if chat_id is None:
        return None
    # Reply chains of plain groups carry a thread id too, and sending that one back fails.
    topic = message.get("message_thread_id") if message.get("is_topic_message") is True else None
    message_id = _number(message.get("message_id")) or None  # 0 marks one that cannot be replied to
    return Place(chat_id, message_id, _number(topic), chat.get("type") == "private")


def _sender(message: Json, place: Place) -> int:
    for key in ("sender_chat", "from"):
        number = _number(_object(message.get(key)).get("id"))
        if number is not None:
            return number
    return place.chat_id


def _written_by_bot(message: Json) -> bool:
    author = _object(message.get("from"))
    robot = author.get("is_bot") is True and _number(author.get("id")) not in STAND_INS
    return robot or bool(message.get("via_bot"))


def _wish(message: Json, bot: Bot, place: Place) -> tuple[Wish | None, str]:
    text, _ = _written(message)
    if not text:
        return _wish_without_text(message, bot, place)
    begin, end = _without_mention(text, bot)
    mentioned = (begin, end) != (0, len(text))
    command = _COMMAND.match(text, begin, end)
    if command:
        name, addressee = command[1].lower(), (command[2] or "").lower()
        ours = not addressee or bot.username in (None, addressee)
        if ours and name in COMMANDS:
            return COMMANDS[name], text[command.end() : end].strip()
        if not ours or name != "cl":
            heard = place.private or mentioned or bool(addressee and ours)
            return ("unknown_command" if heard else None), ""
        begin = command.end()
    elif not (place.private or mentioned or _code_for(message, bot)):
        return None, ""
    found = _program(message, begin, end)
    replied = _replied_to(message)
    if not found and command and not _written_by_bot(replied):
        found = _program(replied)
    return found or ("usage", "")


def _wish_without_text(message: Json, bot: Bot, place: Place) -> tuple[Wish | None, str]:
    if place.private and any(message.get(kind) for kind in MEDIA):
        return _program(message) or ("no_text", "")
    return (_replies_to_bot(message, bot) and _program(message)) or (None, "")


def _written(message: Json) -> tuple[str, list[Span]]:
    """The text or caption, and what of it is code."""
    for key, entities in (("text", "entities"), ("caption", "caption_entities")):
        if text := _text(message.get(key)):
            return text, code_spans(text, _entities(message.get(entities)))
    return "", []


def _entities(value: object) -> Iterator[tuple[str, int, int]]:
    for entity in map(_object, value if isinstance(value, list) else []):
        offset, length = _number(entity.get("offset")), _number(entity.get("length"))
        if offset is not None and length is not None:
            yield _text(entity.get("type")), offset, length


def _without_mention(text: str, bot: Bot) -> tuple[int, int]:
    """Where the text begins and ends when the bot's name is taken from its beginning or its end."""
    if not bot.username:
        return 0, len(text)
    name = re.escape(bot.username)
    if leading := re.match(rf"\s*@{name}(?!\w)[\s,:]*", text, re.IGNORECASE):
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


def _replies_to_bot(message: Json, bot: Bot) -> bool:
    author = _object(_replied_to(message).get("from"))
    if bot.id is not None and author.get("id") == bot.id:
        return True
    return bot.username is not None and _text(author.get("username")).lower() == bot.username


def _code_for(message: Json, bot: Bot) -> bool:
    """Whether a group's message without a command is a program for this bot.

    Replies to the bot are; "thanks!" is not.
    """
    text, spans = _written(message)
    code = bool(spans) or _NOT_CONVERSATION.search(text) is not None
    return code and _replies_to_bot(message, bot)


def _program(message: Json, begin: int = 0, end: int | None = None) -> tuple[Wish, str] | None:
    """The program in a message's Python file, or else in this part of its text."""
    document = _object(message.get("document"))
    named = _text(document.get("file_name")).lower().endswith(".py")
    if _text(document.get("file_id")) and (named or document.get("mime_type") in PYTHON_FILES):
        return "document", document["file_id"]
    text, spans = _written(message)
    source = find_program(text, spans, begin, end)
    return ("run", source) if source else None
