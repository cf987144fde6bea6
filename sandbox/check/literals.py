"""What a program's literals say: words for what is hidden, fields that read attributes."""

import ast
import re
import string
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sandbox.check.source import normalised

_WORD = re.compile(r"\w+")
_DEEPEST_FIELD = 2  # str.format raises ValueError beyond (Objects/stringlib/unicode_format.h)


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


def is_plain_text(node: object) -> bool:
    """Tell whether something is a str literal whose `.format` reads no attribute.

    A sum of literals is one, and a literal times a number. Two repetitions stand for any number:
    what a seam makes, the first one shows.
    """
    texts: list[Any]
    match node:
        case ast.BinOp(ast.Constant(str(text)), ast.Mult(), ast.Constant(int())) | ast.BinOp(
            ast.Constant(int()), ast.Mult(), ast.Constant(str(text))
        ):
            texts = [text, text]
        case ast.BinOp(op=ast.Add()):
            texts = [getattr(term, "value", None) for term in terms_of_sum(node)]
        case _:
            texts = [getattr(node, "value", None)]
    return all(isinstance(text, str) for text in texts) and not _reads_attributes("".join(texts))


def _reads_attributes(template: str, depth: int = 0) -> bool:
    """Tell whether `template.format(...)` would read an attribute or an item of an argument.

    A malformed field raises ValueError when formatting reaches it; the fields before it count.
    """
    try:
        for _, name, spec, _ in string.Formatter().parse(template):
            if name and ("." in name or "[" in name):
                return True
            if spec and depth < _DEEPEST_FIELD and _reads_attributes(spec, depth + 1):
                return True
    except ValueError:
        pass
    return False
