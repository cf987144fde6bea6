"""Statements of other languages, and slips of the hand, as Python writes them."""

import ast
import re
from keyword import iskeyword

from function.natural.typography import normalise, parses
from sandbox import parse

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
    meant = next(filter(None, (_statement(*row, source) for row in _STATEMENTS)), source)
    if re.fullmatch(r"\w+ *=[^=,;()\n]+(?:, *[^\W\d]\w* *=[^=,;()\n]+)+", source):
        meant = re.sub(", *", "; ", source)
    for pattern, replacement in _SIGNS:
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


_STATEMENTS = (
    (r"(?P<yes>(?i:print|echo|say) [^(=\n][^\n]*)", "{yes}"),
    (
        r"(?i:if) (?P<test>[^\n]+?)(?: then |, *(?!.* then ))(?P<yes>[^\n]+?)"
        r"(?:;? (?:else|otherwise) (?P<no>[^\n]+))?",
        "{yes} if {test} else {no}",
    ),
    (
        r"(?:let|var|const|int|float|double|set) (?P<name>\w+) ?= ?(?P<value>[^=;\n]+);?",
        "{name} = {value}",
    ),
    (r"(?P<name>\w+) ?:= ?(?P<value>[^=;\n]+)", "{name} = {value}"),
    (r"(?P<test>[^?\n]+)\?(?P<yes>[^?:\n]+):(?P<no>[^?:\n]+)", "{yes} if {test} else {no}"),
)
_SIGNS = (
    (r" *&& *", " and "),
    (r" *\|\| *", " or "),
    (r"(?<![\w)\]!])!(?=[^\W\d]|\()", "not "),
    (r"([=!]=)=", r"\1"),
    ("<>", "!="),
    ("=<", "<="),
    (r"(\d ?)=>(?= ?\d)", r"\1>="),
    (r"\b([a-z_]\w*)([+-])\2(?= *(?:;|\n|\Z))", r"\1 \2= 1"),
    (r"(?i:\b(?:console\.log|system\.out\.print(?:ln)?|printf|println|print)\()", "print("),
    (r"(?<![\w.:/-])0+(?=[1-9]\d* *(?:[+*)]|\Z))", ""),
    (r"(?i:\btrue\b)", "True"),
    (r"(?i:\bfalse\b)", "False"),
    (r"\b(?:none|null|nil|undefined|NULL)\b", "None"),
)
"""Signs and names of other languages, and Python's."""
