"""What a program's literals say: words for what is hidden."""

import ast
import re
from collections.abc import Iterator
from itertools import groupby

from sandbox.check.source import normalised

_WORD = re.compile(r"\w+")


def hidden_words(text: str, hidden: frozenset[str]) -> Iterator[str]:
    """Yield the words of a text that are in `hidden`, all of which hold an underscore."""
    text = normalised(text)
    if "_" in text:
        yield from filter(hidden.__contains__, _WORD.findall(text))


def joined_texts(terms: list[ast.expr]) -> Iterator[str]:
    """Yield what each run of two or more neighbouring literals says when it is joined."""
    for is_text, run in groupby(map(text_of, terms), lambda text: text is not None):
        pieces = [*filter(None, run)]
        if is_text and len(pieces) > 1:
            yield "".join(pieces)


def text_of(term: ast.AST) -> str | None:
    """Return the text of a str or bytes literal, read byte by byte; else None."""
    if term.__class__ is ast.Constant:
        value = term.value
        if value.__class__ is str:
            return value
        if value.__class__ is bytes:
            return value.decode("latin-1")
    return None


def terms_of_sum(node: ast.BinOp) -> list[ast.expr]:
    """Return the terms of a chain of additions, in their order."""
    terms: list[ast.expr] = []
    todo: list[ast.expr] = [node]
    while todo:
        match todo.pop():
            case ast.BinOp(op=ast.Add()) as inner:
                todo += [inner.left, inner.right]
            case term:
                terms.append(term)
    return terms[::-1]
