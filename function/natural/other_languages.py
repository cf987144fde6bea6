"""Statements of other languages, and slips of the hand, as Python writes them."""

import ast
import re
import tomllib
from keyword import iskeyword
from pathlib import Path

from function.natural.typography import normalise, parses
from sandbox import parse

_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_LITERAL = re.compile(
    r"""(\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*)""", re.DOTALL
)


def in_code(pattern: str, replacement: str, source: str) -> str:
    """The source with a pattern replaced outside its strings and comments."""
    pieces = _LITERAL.split(source)
    pieces[::2] = (re.sub(pattern, replacement, piece) for piece in pieces[::2])
    return "".join(pieces)


def in_python(source: str) -> str:
    """What a short program may have meant: `x = 5` for `let x = 5`; "" if that is not known."""
    statements = (_statement(row, form, source) for row, form in _ROWS["statements"])
    meant = next(filter(None, statements), source)
    if re.fullmatch(r"\w+ *=[^=,;()\n]+(?:, *[^\W\d]\w* *=[^=,;()\n]+)+", source):
        meant = re.sub(", *", "; ", source)
    for pattern, replacement in _ROWS["signs"]:
        meant = in_code(pattern, replacement, meant)
    if not parses(meant) and meant[-1:] not in ("(", ",", "\\"):
        meant += ")" * (meant.count("(") - meant.count(")"))
        meant = normalise(meant) or meant
    return meant if meant != source and parses(meant) else ""


def _statement(pattern: str, form: str, source: str) -> str:
    """A statement in Python, if the pattern is of it; the groups `yes` and `no` are values."""
    if not (match := re.fullmatch(pattern, source)):
        return ""
    groups = {name: text.strip() for name, text in match.groupdict("None").items()}
    test = re.sub(r"(?<![<>=!])=(?!=)", "==", groups.get("test", ""))
    groups |= {name: _value(groups[name], test) for name in ("yes", "no") if name in groups}
    return form.format(**groups | {"test": test}) if all(groups.values()) else ""


def _value(text: str, test: str) -> str:
    """A value, or what is printed, with words in quotes that are no name in the test."""
    value = re.sub(r"\A(?i:print|echo|say)\s+", "", text)
    is_printed = value != text
    is_words = re.fullmatch(r"[^\W\d_]+(?:,? [^\W\d_]+)*[.!?]?", value) and not iskeyword(value)
    if (is_words and not re.search(rf"\b{value}\b", test)) or not parses(value):
        value = f'"{value}"'
    is_expression = isinstance(parse(f"({value})"), ast.Module) and "=" not in value
    return (f"print({value})" if is_printed else value) * is_expression
