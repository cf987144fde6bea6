"""A text in parts: plain words of ours, and code, in which nothing is a link or a mention.

What a stranger wrote stands in code parts only. No part is ever searched for markup.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple


class Part(NamedTuple):
    """A piece of a text: "" plain, "code" within a line, "pre" a block."""

    kind: Literal["", "code", "pre"]
    text: str


Parts = tuple[Part, ...]


def code(text: str) -> Part:
    """Code: a block if it has several lines."""
    return Part("pre" if "\n" in text else "code", text)


def parts(*pieces: str | Part) -> Parts:
    """Pieces of one text: plain words as str, code as parts."""
    return tuple(Part("", each) if isinstance(each, str) else each for each in pieces)


def marked(sentence: str) -> Parts:
    """A sentence of ours in parts: code stands in `backticks`."""
    pieces = enumerate(sentence.split("`"))
    return parts(*(code(piece) if index % 2 else piece for index, piece in pieces if piece))


def text_of(pieces: Iterable[Part]) -> str:
    """The text without its formatting."""
    return "".join(piece.text for piece in pieces)
