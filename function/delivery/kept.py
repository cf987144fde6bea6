"""Answers as they are kept in the store: as text, and read back without trust."""

import json
from typing import Any

from function.answers.inline import Results
from function.answers.replies import Reply
from function.parts import Part, Parts
from function.telegram.types import Article

Answer = Reply | Results | None  # None: nothing is said


def encode(answer: Answer) -> str:
    """The text of an answer; pictures are not kept."""
    match answer:
        case Reply():
            return json.dumps({k: v for k, v in vars(answer).items() if k != "pictures"})
        case Results(found, cache_seconds):
            rows = [(each.id, each.title, each.description, each.message) for each in found]
            return json.dumps({"articles": rows, "cache_seconds": cache_seconds})
    return "null"


def decode(text: str) -> Answer:
    """The answer of a text. Raises ValueError for any other text."""
    try:
        kept = json.loads(text)
    except RecursionError:
        raise ValueError("no answer") from None
    match kept:
        case None:
            return None
        case {"message": message, "caption": caption, "document": str(text), "asks": bool(asks)}:
            return Reply(_parts(message), _parts(caption), text, asks)
        case {"articles": list(rows), "cache_seconds": int(cache_seconds)}:
            return Results(tuple(map(_article, rows)), cache_seconds)
    raise ValueError("no answer")


def _article(row: Any) -> Article:
    match row:
        case [str(id_), str(title), str(description), message]:
            return Article(id_, title, description, _parts(message))
    raise ValueError("no article")


def _parts(rows: Any) -> Parts:
    parts = []
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case ["" | "code" | "pre" as kind, str(text)]:
                parts.append(Part(kind, text))
            case _:
                raise ValueError("no part of a text")
    return tuple(parts)
