"""What the literals of a program say: words that name what is hidden, fields that read attributes."""

import ast
import re
import string
from collections.abc import Iterator
from itertools import groupby

from sandbox.source_text import normalised

__all__ = ["hidden_words", "joined_texts", "literal_text", "reads_attributes", "terms_of_sum"]

_WORD = re.compile(r"\w+")
_DEEPEST_FIELD = 2  # str.format raises ValueError beyond (Objects/stringlib/unicode_format.h)


def hidden_words(text: str | bytes, hidden: frozenset[str]) -> Iterator[str]:
    """Yield the words of a text that are in `hidden` or hold two underscores beside a letter.

    Words in `hidden` hold an underscore. A line drawn with underscores is no word, but for exactly
    two, of which `"__" + name` is made.
    """
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    text = normalised(text)
    if "_" in text:
        for word in _WORD.findall(text):
            if word in hidden or "__" in word and (word.strip("_") or text == "__"):
                yield word


def joined_texts(terms: list[ast.expr]) -> Iterator[str | bytes]:
    """Yield what each run of two or more neighbouring literals says when it is joined."""
    for kind, run in groupby(terms, lambda term: type(getattr(term, "value", None))):
        pieces = [term.value for term in run if isinstance(term, ast.Constant)]
        if len(pieces) > 1 and kind is str:
            yield "".join(map(str, pieces))
        elif len(pieces) > 1 and kind is bytes:
            yield b"".join(piece for piece in pieces if isinstance(piece, bytes))


def terms_of_sum(node: ast.BinOp) -> tuple[list[ast.expr], list[ast.BinOp]]:
    """Return the terms of a chain of additions in their order, and the additions themselves."""
    terms: list[ast.expr] = []
    sums: list[ast.BinOp] = []
    todo: list[ast.expr] = [node]
    while todo:
        match todo.pop():
            case ast.BinOp(op=ast.Add()) as inner:
                sums.append(inner)
                todo += [inner.left, inner.right]
            case term:
                terms.append(term)
    return terms[::-1], sums


def literal_text(node: ast.expr) -> str | None:
    """Return the text of a str literal, a sum of them, or one times a number; else None.

    Two repetitions stand for any number: what a seam makes, the first one shows.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=str(text) | int(text)) as left):
            right = node.right
            texts = [left.value, right.value] if isinstance(right, ast.Constant) else []
            if {type(value) for value in texts} == {str, int}:
                return next(value for value in texts if isinstance(value, str)) * 2
        case ast.BinOp(op=ast.Add()):
            values = [getattr(term, "value", None) for term in terms_of_sum(node)[0]]
            texts = [value for value in values if isinstance(value, str)]
            return "".join(texts) if len(texts) == len(values) else None
    return None


def reads_attributes(template: str, depth: int = 0) -> bool:
    """Tell whether `template.format(...)` would read an attribute or an item of an argument.

    A malformed field raises ValueError when formatting reaches it; the fields before it count.
    """
    try:
        for _, name, spec, _ in string.Formatter().parse(template):
            if name and ("." in name or "[" in name):
                return True
            if spec and depth < _DEEPEST_FIELD and reads_attributes(spec, depth + 1):
                return True
    except ValueError:
        pass
    return False
