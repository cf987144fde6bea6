"""Replies as they are kept in the store: as text, and read back without trust."""

import json
from typing import Any

from function.parts import Part, Parts
from function.telegram.types import Reply


def encode(reply: Reply | None) -> str:
    """The text of a reply, or of None: nothing is said. Pictures are not kept."""
    return json.dumps(reply and reply[:-1])


def decode(text: str) -> Reply | None:
    """The reply of a text. Raises ValueError for any other text."""
    try:
        kept = json.loads(text)
    except RecursionError:
        raise ValueError("no reply") from None
    match kept:
        case None:
            return None
        case [message, caption, str(text), bool(asks)]:
            return Reply(_parts(message), _parts(caption), text, asks)
    raise ValueError("no reply")


def _parts(rows: Any) -> Parts:
    parts = []
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case ["" | "code" | "pre" as kind, str(text)]:
                parts.append(Part(kind, text))
            case _:
                raise ValueError("no part of a text")
    return tuple(parts)
