"""What the bot works with instead of the Bot API's JSON.

Named tuples are made for each message: in a third of the time of a frozen dataclass.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from function.parts import Parts
from sandbox import Picture

Json = dict[str, Any]

Action = (
    Literal["run", "document", "reply", "usage", "unknown_command", "no_text", "too_long"]
    | Literal["start", "help", "mode", "privacy"]
)


@dataclass(frozen=True)
class File:
    """A parameter that is uploaded: its name, its content, and its media type."""

    name: str
    content: bytes
    type: str


@dataclass(frozen=True)
class Identity:
    """This bot's id, and its user name in lower case without the @; None if unknown."""

    id: int | None = None
    username: str | None = None


class Address(NamedTuple):
    """The message to be answered: its chat, its id, and the id of the forum topic it is in."""

    chat_id: int
    message_id: int | None
    thread_id: int | None
    private: bool


class Request(NamedTuple):
    """What a message asks for.

    `text` is the program, a document's file id, or the command's argument; `stdin` the lines that
    came with the program, None for none. `typed` is the message as it was written, where it may
    answer a question of the bot's: it is a reply, or marks no part of it as code. A "reply" is
    nothing else. `user` is a person's id; a chat's where Telegram hides the person behind the chat
    or one of its channels.
    """

    address: Address
    user: int
    action: Action
    text: str = ""
    stdin: str | None = None
    typed: str = ""
    edited: bool = False


@dataclass(frozen=True)
class InlineQuery:
    """One state of a text being typed after the bot's name; `offset` asks for a further page."""

    id: str
    user: int
    text: str
    offset: str = ""


@dataclass(frozen=True)
class Article:
    """One inline result: what the list shows, and the message that a tap sends."""

    id: str
    title: str
    description: str
    message: Parts


@dataclass(frozen=True)
class Results:
    """What is shown for an inline query, and for how many seconds Telegram may keep it."""

    articles: tuple[Article, ...] = ()
    cache_seconds: int = 0


class Reply(NamedTuple):
    """What is said to one message. Output that does not fit is also in `document`, whole.

    With `asks`, the user's next message is an answer to it. `caption` is the message for a document
    and for `pictures`: shorter, or nothing where they say it all.
    """

    message: Parts
    caption: Parts = ()
    document: str = ""
    asks: bool = False
    pictures: tuple[Picture, ...] = ()
