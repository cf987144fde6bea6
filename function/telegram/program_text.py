"""Finds the program in what a person wrote: its formatted or fenced code, or all of it."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from sandbox import Unparsed, parse

# A fence opens at the start of a line; the closing one may be forgotten.
_FENCE = re.compile(
    r"^[^\S\n]*(`{3,}|~{3,})[^\S\n]*(?:[A-Za-z][\w+-]*[^\S\n]*\n|(?:python3?|py3?)\b)?"
    r"(.*?)(?:\1[`~]*[^\S\n]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_STDIN = re.compile(r"^[^\S\n]*input:[^\S\n]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
_BACKTICKS = re.compile(r"(`{1,2})([^`]+)\1")


class Span(NamedTuple):
    """A part of a text that is "pre" or "code": from `start` to before `stop` in code points."""

    kind: str
    start: int
    stop: int


def find_program(
    text: str, spans: Iterable[Span] = (), begin: int = 0, end: int | None = None
) -> str:
    """The program in a part of a text, without blank lines around it; "" if there is none.

    That is its formatted or fenced blocks, or the pieces of code amid prose, or else all of it. A
    text that is Python as it stands is never taken apart by its characters.
    """
    end = len(text) if end is None else end
    inside = [Span(kind, max(start, begin), min(stop, end)) for kind, start, stop in spans]
    marked = [(kind, text[start:stop]) for kind, start, stop in inside if start < stop]
    return _without_indent(_code(text[begin:end], marked))


def split_stdin(text: str, begin: int, end: int) -> tuple[int, str | None]:
    """Where the program ends in a part of a text, and the lines after a line `input:` if any."""
    found = _STDIN.search(text, begin, end)
    if not found or _is_python(text[begin:end]):
        return end, None
    return found.start(), text[found.end() : end]


def code_spans(text: str, entities: Iterable[tuple[str, int, int]]) -> list[Span]:
    """The code among entities given as (type, offset, length), which count UTF-16 units.

    One that ends outside the text or inside a surrogate pair is left out; overlaps are merged.
    """
    code = [(kind, at, at + length) for kind, at, length in entities if kind in ("pre", "code")]
    if not code:
        return []
    units = accumulate((1 + (character > "\uffff") for character in text), initial=0)
    position = {offset: index for index, offset in enumerate(units)}
    spans = [
        Span(kind, position[a], position[b]) for kind, a, b in code if {a, b} <= position.keys()
    ]
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start < merged[-1].stop:  # Telegram makes none that overlap
            merged[-1] = merged[-1]._replace(stop=max(merged[-1].stop, span.stop))
        else:
            merged.append(span)
    return merged


def _code(text: str, marked: Sequence[tuple[str, str]]) -> str:
    """The code in a text: its blocks, or the pieces of code amid prose, or all of it."""
    if not marked and not ("`" in text or "~~~" in text):
        return text
    blocks = [code for kind, code in marked if kind == "pre"] or _fenced(text)
    if blocks:
        return "\n".join(block.strip("\n") for block in blocks)
    if len(marked) == 1 or (marked and not _is_python(text)):
        return "\n".join(code for _, code in marked)
    quoted = _BACKTICKS.fullmatch(text.strip())
    return quoted[2] if quoted else text


def _fenced(text: str) -> list[str]:
    """What stands between fences, unless these are lines of a string of a program."""
    outside = _FENCE.sub("", text)
    if outside == text or any(mark in outside for mark in ('"""', "'''")) or _is_python(text):
        return []
    return [code for _, code in _FENCE.findall(text)]


def _is_python(text: str) -> bool:
    return not isinstance(parse(text), Unparsed)


def _without_indent(source: str) -> str:
    """A program without blank lines around it, a byte order mark and a common indentation."""
    source = source.removeprefix("\ufeff").replace("\r\n", "\n")
    if source[:1].isspace():
        source = re.sub(r"\A(?:[^\S\n]*\n)+", "", source)
    source = source.rstrip()
    return textwrap.dedent(source).lstrip() if source[:1].isspace() else source
