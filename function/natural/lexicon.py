"""Cuts a text into tokens, by the words of each language in words/*.txt.

A line of these files is `MEANING: phrase | phrase`; `stem(|s)` stands for `stem` and `stems`.
A phrase with a capital A or B is a form: a sentence about operands; its meaning is what is worked
out. U is a unit, D and E are expressions in an unknown. Else the meaning is a terminal of the
grammar in reader.py, some with a value: `call`, `list` and `value` with the Python for it, `num
START STEP` for phrases that semicolons separate, `scale` and `part` for thousands and thirds, `unit
KIND SIZE`, `month NUMBER`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

_WORDS = Path(__file__).with_name("words")
FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LETTER = rf"(?:[^\W\d_²³¹⁰-₉{FRACTIONS}]|[\u0900-\u0963])"
_RAW = r"""
    (?P<date> (?<![\d.,/-]) (?: \d{4}(?P<_a>[-/.])\d\d?(?P=_a)\d\d? | \d\d(?P<_b>-)\d\d(?P=_b)\d{4}
      | \d\d?(?P<_c>[./])\d\d?(?P=_c)\d{4} ) (?![\d.,/-]*\d) )
  | (?P<clock> (?<![\d:.,]) (?: \d{1,2}:[0-5]\d (?: :[0-5]\d)? (?! [\d:.,]) (?: \s?[ap]\.?m\b\.?)?
      | \d{1,2}\s?[ap]\.?m\b\.?) )
  | (?P<number> (?: (?: \d{1,3}(?:[SPACE'’]\d{3})+(?!\d) | \d+ ) (?: [.COMMA]\d+ )* | [.]\d+ )
      (?: e[-+]?\d{1,3}(?!\w) )? )
  | (?P<power> [⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+ ) | (?P<subscript> [₀₁₂₃₄₅₆₇₈₉]+ ) | (?P<vulgar> [FRACTIONS] )
  | (?P<python> math\.[a-z]\w* ) | (?P<word> LETTER+(?:['’]LETTER+)* )
  | (?P<sign> \*\* | // | [<>=!]= | <> | -> | => | \S )
"""
_NAMED_DAY = re.compile(
    rf"""(?<![\d.,]) (?: (?P<day>\d\d?) (?:st|nd|rd|th|er|º|\.)? [ -]? (?:(?:of|de)[ ])? )?
    (?<!{_LETTER}) (?P<month>{_LETTER}+) \.?,? [ -]? (?:de[ ])?
    (?: (?P<after>\d\d?) (?:st|nd|rd|th)? ,?[ ] )? (?P<year>\d{{4}}) (?!\d|[.,]\d) (?:[ ]года)?""",
    re.VERBOSE,
)
_HYPHEN = re.compile(rf"(?<={_LETTER}{{3}})-(?={_LETTER}{{2}})")
_GERMAN = re.compile(r"(hundert|tausend)(?:und)?")  # zweihundertfünf


@dataclass(frozen=True, slots=True)
class Unit:
    """What it measures, how much of the kind's base unit it is, and the sign that is shown."""

    kind: str
    size: Fraction
    symbol: str


class Token(NamedTuple):
    """A phrase or a number, what it may mean, and whether it touches the token before."""

    text: str
    roles: dict[str, Any]
    glued: bool = False


Form = tuple[str, tuple[str, ...]]  # what is worked out, and the phrases and operands in order


class _Lexicon(NamedTuple):
    meanings: dict[str, dict[str, Any]]  # of phrases
    longest: dict[str, int]  # how many words a phrase may have that begins with a word
    forms: dict[str, list[Form]]


def tokens(text: str, *, commas: bool = False, spaces: bool = False) -> list[Token]:
    """Cut a text in lower case; into nothing if it has a word that no language knows, or 0x1f.

    `commas` and `spaces` tell whether such a sign may belong to a number.
    """
    if re.search(r"\b0[xbo]", text):
        return []
    meanings, longest, _ = _lexicon()
    raw = list(_raw(text, commas, spaces))
    words = [word for word, _, _ in raw]
    found: list[Token] = []
    position = 0
    while position < len(raw):
        word, kind, glued = raw[position]
        is_counted = bool(found) and "number" in found[-1].roles
        for size in range(longest.get(word, 0), 0, -1):
            phrase = " ".join(words[position : position + size])
            roles = meanings.get(phrase, {})
            is_form = roles.keys() == {"form"}
            if roles and not (is_form and is_counted and "unit" in meanings.get(word, {})):
                break  # else it is `10 days from now`, not `days from A to B`
        else:
            if kind == "word" and len(word) > 1 and not re.fullmatch("[0-9a-f]+", word):
                return []
            size, phrase, roles = 1, word, {}
        own = {word if kind == "sign" else kind: word} if size == 1 else {}
        found.append(Token(phrase, own | roles, glued))
        position += size
    return found


def forms(phrase: str) -> list[Form]:
    """The forms that begin with a phrase, or with an operand and then the phrase."""
    return _lexicon().forms.get(phrase, [])


def dated(text: str) -> str:
    """A text with the days that have the name of a month in digits."""

    def in_digits(match: re.Match[str]) -> str:
        month = _lexicon().meanings.get(match["month"], {}).get("month")
        days = [day for day in match.group("day", "after") if day]
        is_day = month and len(days) == 1
        return f"{match['year']}-{month:02}-{days[0]:0>2}" if is_day else match[0]

    return _NAMED_DAY.sub(in_digits, text)


def _raw(text: str, commas: bool = False, spaces: bool = False) -> Iterator[tuple[str, str, bool]]:
    text, end = _GERMAN.sub(r" \1 ", _HYPHEN.sub(" ", text)), 0
    for match in _pattern(commas, spaces).finditer(text):
        yield match[0].replace("’", "'"), match.lastgroup or "", match.start() == end
        end = match.end()


@cache
def _pattern(commas: bool, spaces: bool) -> re.Pattern[str]:
    raw = _RAW.replace("SPACE", " " * spaces).replace("COMMA", "," * commas)
    return re.compile(raw.replace("FRACTIONS", FRACTIONS).replace("LETTER", _LETTER), re.VERBOSE)


@cache
def _lexicon() -> _Lexicon:
    """Read the files, once, when the first text is read: it takes 30 ms."""
    found = _Lexicon({}, {}, {})
    for file in sorted(_WORDS.glob("*.txt")):
        for line in file.read_text("utf-8").splitlines():
            meaning, colon, phrases = line.partition(": ")
            if colon and not line.startswith("#"):
                _add(found, meaning, phrases)
    return found


def _add(found: _Lexicon, meaning: str, phrases: str) -> None:
    """Put in the phrases of a line."""
    head, _, value = meaning.partition(" ")
    for index, group in enumerate(phrases.split("; ")):
        role: Any = int(value) if value.isdigit() else value or head
        if head == "num":
            start, step = map(int, value.split())
            role = start + index * step
        for phrase in chain.from_iterable(map(_inflected, group.split(" | "))):
            parts = tuple(filter(None, re.split(r" ?\b([ABDEUX])\b ?", phrase)))
            if len(parts) > 1:
                found.forms.setdefault(parts[parts[0] == "A"], []).append((meaning, parts))
                for part in set(parts) - set("ABDEUX"):
                    _roles(found, part)["form"] = part
                continue
            roles = _roles(found, phrase)
            if head == "unit":
                kind, size = value.split()
                symbol = phrases.partition(" | ")[0]
                roles.setdefault("unit", []).append(Unit(kind, Fraction(size), symbol))
            else:
                roles[head] = role


def _roles(found: _Lexicon, phrase: str) -> dict[str, Any]:
    words = [word for word, _, _ in _raw(phrase.lower())]
    found.longest[words[0]] = max(len(words), found.longest.get(words[0], 0))
    return found.meanings.setdefault(" ".join(words), {})


def _inflected(phrase: str) -> list[str]:
    if not (match := re.search(r"\(([^)]*)\)", phrase)):
        return [phrase]
    before, after = phrase[: match.start()], phrase[match.end() :]
    return [form for end in match[1].split("|") for form in _inflected(before + end + after)]
