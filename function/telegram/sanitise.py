"""Makes text survive Telegram: what it deletes, refuses or shows wrongly is replaced beforehand.

What the server does to text is read from its source (tdlib: MessageEntity.cpp, misc.cpp).
"""

import re
import unicodedata
from collections.abc import Iterable

from function.telegram.lengths import JOINERS

MARKS_IN_A_ROW = 4  # accents on one letter; more are ornament that runs over the lines around
NEWLINES_IN_A_ROW = 4

# Escape sequences of terminals (ECMA-48): colours, cursor movements, window titles.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_NEWLINES = re.compile(rf"\n{{{NEWLINES_IN_A_ROW + 1},}}")
# A joiner makes one sign of its neighbours in Persian, Hindi or emoji; beside ASCII it only hides.
_STRAY_JOINER = re.compile(rf"(?<=[\x00-\x7f])[{JOINERS}]|[{JOINERS}](?=[\x00-\x7f]|\Z)")
_INVISIBLE_MARK = re.compile(
    "(?<=[\x00-\x7f])[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_DELETED_BY_SERVER = "\u0333\u033f\u030a"
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_NONCHARACTER = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
    + "]"
)
# A bot token (digits, colon, 35 characters), also with one separator between all characters.
_TOKEN = re.compile(
    r"\d{6,12}[:：][A-Za-z0-9_-]{35,}|\d(\W{1,4})(?:\d\1){5,11}[:：](?:\1[A-Za-z0-9_-]){35,}"
)
_SHORTEST_TOKEN = 42
REDACTED = "[token removed]"


def sanitise(text: str) -> str:
    """A text that Telegram shows as a terminal would; "" if there is nothing to see.

    Takes any str, lone surrogates included. Blank characters alone are shown as Python writes them.
    """
    line = text.strip("\n")
    if line.isascii() and line.isprintable():  # nearly all are
        return line.rstrip() or (ascii(line) if line else "")
    shown = text if text.isascii() else _without_oddities(text)
    shown = _LINE_ENDS.sub("\n", _TERMINAL.sub("", shown)).expandtabs()
    shown = _NEWLINES.sub("\n" * NEWLINES_IN_A_ROW, _CONTROLS.sub("", shown)).rstrip()
    shown = _BLANK_LINES.sub("", shown, count=1)
    return ascii(line) if is_blank(shown) else shown


def is_blank(text: str) -> bool:
    """Whether Telegram, or a person, would take a text for an empty one."""
    return not any(
        unicodedata.category(c) == "Co"
        or (unicodedata.category(c)[0] in "LNPS" and c not in _BLANK_LETTERS)
        for c in set(text)
    )


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """A sanitised text without the secrets, and without anything shaped like a bot token."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return _TOKEN.sub(REDACTED, text) if len(text) >= _SHORTEST_TOKEN else text


def _without_oddities(text: str) -> str:
    """What only text beyond ASCII needs: surrogates, invisible and ornamental characters."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _NONCHARACTER.sub("\ufffd", text)
    # The server deletes the ring above, which "å" may hold: compose it first.
    text = re.sub(".\u030a", lambda pair: unicodedata.normalize("NFC", pair[0]), text)
    if not any(_is_odd(c) for c in set(text)):  # as in nearly all texts
        return text
    kept = [""]
    marks = 0
    for c in text:
        category = unicodedata.category(c)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if c in JOINERS:
            hidden = kept[-1] in JOINERS
        else:
            hidden = category == "Cf" or marks > MARKS_IN_A_ROW or c in _DELETED_BY_SERVER
        if not hidden:
            kept.append(c)
    return _STRAY_JOINER.sub("", _INVISIBLE_MARK.sub("", "".join(kept)))


def _is_odd(c: str) -> bool:
    return c in _DELETED_BY_SERVER or unicodedata.category(c) in ("Cf", "Mn", "Me")
