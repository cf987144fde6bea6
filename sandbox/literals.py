"""What a program's literals say: words for what is hidden, fields that read attributes."""

import ast
import re
import string
from collections.abc import Iterator
from itertools import groupby

from sandbox.source_text import normalised

__all__ = [
    "hidden_words",
    "joined_texts",
    "literal_text",
    "reads_attributes",
    "terms_of_sum",
    "text_of",
]

_WORD = re.compile(r"\w+")
_DEEPEST_FIELD = 2  # str.format raises ValueError beyond (Objects/stringlib/unicode_format.h)


def hidden_words(text: str, hidden: frozenset[str]) -> Iterator[str]:
    """Yield the words of a text that are in `hidden` or hold two underscores beside a letter.

    Words in `hidden` hold an underscore. A line drawn with underscores is no word, but for exactly
    two, of which `"__" + name` is made.
    """
    text = normalised(text)
    if "_" in text:
        for word in _WORD.findall(text):
            if word in hidden or ("__" in word and (word.strip("_") or text == "__")):
                yield word


def joined_texts(terms: list[ast.expr]) -> Iterator[str]:
    """Yield what each run of two or more neighbouring literals says when it is joined."""
    for is_text, run in groupby(map(text_of, terms), lambda text: text is not None):
        pieces = [*filter(None, run)]
        if is_text and len(pieces) > 1:
            yield "".join(pieces)


def text_of(term: ast.expr) -> str | None:
    """Return the text of a str or bytes literal, read byte by byte; else None."""
    value = term.value if isinstance(term, ast.Constant) else None
    return value.decode("latin-1") if isinstance(value, bytes) else _str_of(term)


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
        case ast.BinOp(ast.Constant(str(text)), ast.Mult(), ast.Constant(int())) | ast.BinOp(
            ast.Constant(int()), ast.Mult(), ast.Constant(str(text))
        ):
            return text * 2
        case ast.BinOp(op=ast.Add()):
            texts = [_str_of(term) for term in terms_of_sum(node)[0]]
            return None if None in texts else "".join(filter(None, texts))
    return None


def _str_of(term: ast.expr) -> str | None:
    return term.value if isinstance(term, ast.Constant) and isinstance(term.value, str) else None


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
