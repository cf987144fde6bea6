"""What phones, chat clients and consoles do to a program's text, undone.

`normalise` is for text that does not run as it stands, so no mapping here can change the meaning
of a valid program. Inside string literals everything stays as it was typed, if that parses.
"""

import ast
import builtins
import html
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Iterator

from sandbox import parse

CHARACTERS = {
    "*": "×✕✖⨯∗∙⋅·•",
    "/": "÷∕⁄➗",
    "-": "−‐‑‒–—―⁃﹘﹣➖",
    "+": "➕﹢",
    "<=": "≤⩽",
    ">=": "≥⩾",
    "!=": "≠",
    "->": "→",
    "...": "…",
    ",": "،、",
    ".": "٫。",
    "?": "؟",
    "": "٬\ufe0f\u20e3",  # thousands mark; what makes an emoji of a digit or a sign
    "\n": "\x85\u2028\u2029",
}
"""Python's own characters, each with what is typed in its place. See `_plain` for whole ranges."""

_DOUBLE, _SINGLE = "“”„‟", "‘’‚‛"
_PLAIN = {ord(char): plain for plain, chars in CHARACTERS.items() for char in chars}
_ASCII_QUOTES = {"long": '"""', "double": '"', "angle": '"', "single": "'"}  # see _PIECE
_QUOTES = str.maketrans(_DOUBLE + "«»" + _SINGLE, '"' * 6 + "'" * 4)
_SHIFTS = str.maketrans({"«": "<<", "»": ">>"})  # Telegram Desktop replaces << and >> so

# Every alternative matches to the end of its line or text when unclosed: so the scan is linear.
_PIECE = re.compile(
    rf"""
    (?P<kept> \#[^\n]*
      | \"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z) | '''(?:[^\\]|\\.)*?(?:'''|\Z)
      | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? )
  | [{_DOUBLE}]{{3}} (?P<long>.*?) (?:[{_DOUBLE}"]{{3}}|\Z)
  | [{_DOUBLE}] (?P<double>[^{_DOUBLE}"\n]*) [{_DOUBLE}"]?
  | [{_SINGLE}] (?P<single>[^{_SINGLE}'\n]*) [{_SINGLE}']?
  | « (?P<angle>[^«»\n]*) »
  | (?P<code> [^\#"'{_DOUBLE}{_SINGLE}«]+ | « )
    """,
    re.VERBOSE | re.DOTALL,
)
_PROMPT = re.compile(r"\s*(?:(?:>>>|\.\.\.:?|In \[\d+\]:) ?)+")
# A transcript begins with a prompt, or with what an interpreter says before it.
_CONSOLE = re.compile(
    r"\A\s*(?:(?:I?Python \d|\[(?:GCC|Clang|MSC) |Type [\"'])[^\n]*\n\s*)*(?:>>>|In \[\d+\]:)"
)
_FENCED = re.compile(
    r"\s*(`{3,}|~{3,})[ \t]*(?:[A-Za-z][\w+#.-]*[ \t]*)?\n(.*?)\n?(?:\1\s*)?", re.DOTALL
)
_MARGIN = re.compile(r"(?:>|\d+(?:\)|\.(?!\d))) ?(?=[^\n])")  # of a quotation, of numbered lines
_ENTITY = "&(?:lt|gt|quot|#39|amp);"
_ESCAPED = re.compile(r"\\([*_`~])")
_KEYWORDS = {word for word in keyword.kwlist if word.islower()}
_NAMES = {name for name in (*dir(builtins), "math", "random", "json") if name.islower()}
_CALL = rf"\A(?:{'|'.join(sorted(name.capitalize() for name in _NAMES))})\b"
_PASTED = re.compile(f"{_CONSOLE.pattern}|{_CALL}|{_ENTITY}")
_CAPITAL = re.compile(r"^[ \t]*+[A-Z][a-z]*+\b|(?<![\w.])[A-Z][A-Za-z]*+(?=\s?[(.])", re.MULTILINE)


def normalise(source: str) -> str | None:
    """Return the program that `source` was before it was typeset, or None.

    None means that `source` parses as it is and is no console's, or that nothing makes it parse.
    """
    if parses(source) and not _PASTED.search(source):
        return None
    for text in dict.fromkeys(_readings(source)):
        if text and text != source and parses(text):
            return text
    return None


def parses(source: str) -> bool:
    """Tell whether `source` is Python, for any text at all. Nothing is compiled or run."""
    return isinstance(parse(source), ast.Module)


def plain(source: str) -> str:
    """Return `source` without wrapping and typesetting, whether or not it is Python then."""
    return _trim(_map_code(unwrap(source)))


def unwrap(source: str) -> str:
    """Return what is inside fences, backticks or a console transcript (its prompted lines)."""
    text = source.removeprefix("\ufeff").strip("\n")
    inner = text.strip("` \t\n")
    if fenced := _FENCED.fullmatch(text):
        text = fenced[2]
    elif inner != text.strip():
        text = inner
    if _CONSOLE.search(text):
        prompts = ((line, _PROMPT.match(line)) for line in text.splitlines())
        text = "\n".join(line[prompt.end() :] for line, prompt in prompts if prompt)
    return text


def _readings(source: str) -> Iterator[str]:
    text = unwrap(source)
    first, newline, rest = text.partition("\n")
    for shape in (text, textwrap.dedent(text), first.lstrip() + newline + textwrap.dedent(rest)):
        yield _trim(_map_code(shape))
        yield _trim(_map_code(shape.translate(_SHIFTS)))
        yield _trim(_map_characters(shape.translate(_QUOTES)))
    plain_text = _trim(_map_code(textwrap.dedent(text)))
    yield _without_capitals(plain_text)
    plain_text = _ESCAPED.sub(r"\1", html.unescape(plain_text)).strip()
    yield re.sub(r"\A(\*\*|__|\*)(.+)\1\Z", r"\2", plain_text)
    lines = plain_text.split("\n")
    if all(_MARGIN.match(line) for line in lines):
        yield "\n".join(_MARGIN.sub("", line, count=1) for line in lines)


def _without_capitals(source: str) -> str:
    """Undo the capitals that phones put at the start of a line: `Print(2)`, `For i in x:`."""

    def lower(match: re.Match[str]) -> str:
        word = match[0].strip().lower()
        return match[0].lower() if word in _NAMES or word in _KEYWORDS else match[0]

    return _CAPITAL.sub(lower, source)


def _map_code(text: str) -> str:
    """Map what is outside string literals and comments, and the quotes around literals."""

    def mapped(piece: re.Match[str]) -> str:
        kind = piece.lastgroup or "kept"
        quote = _ASCII_QUOTES.get(kind, "")
        return _map_characters(piece[0]) if kind == "code" else f"{quote}{piece[kind]}{quote}"

    return _PIECE.sub(mapped, text)


def _map_characters(text: str) -> str:
    return text if text.isascii() else "".join(map(_plain, text))


def _plain(char: str) -> str:
    if char.isascii():
        return char
    if (mapped := _PLAIN.get(ord(char))) is not None:
        return mapped
    if "！" <= char <= "～":  # the full-width forms of ASCII
        return chr(ord(char) - 0xFEE0)
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    match unicodedata.category(char):
        case "Zs":
            return " "
        case "Cf":  # zero-width and directional marks
            return ""
    return char


def _trim(text: str) -> str:
    """Drop the question around a sum (`= 2+2`, `2+2 = ?`) and emoji at either end."""
    emoji = "".join(filter(_is_emoji, set(text)))
    text = text.rstrip("=? \t\r\n" + emoji)
    rest = text.lstrip(emoji)
    is_led = rest != text and rest[:1].isspace()  # else it is an operand, as in `😀+1`
    question = rest.lstrip() if is_led else text.lstrip()
    return question.lstrip("=¿ ") if is_led or question[:1] in ("=", "¿") else text


def _is_emoji(char: str) -> bool:
    # From U+2300 on, for the degree sign and the like are symbols too. A skin tone is category Sk.
    return char >= "\u2300" and unicodedata.category(char) in ("So", "Sk")
