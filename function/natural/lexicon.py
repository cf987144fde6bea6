"""Cuts a text into tokens, by the words of each language in words/*.txt.

A line of these files is `MEANING: phrase | phrase`; `stem(|s)` stands for `stem` and `stems`.
A phrase with the capitals A and B is a form: a sentence about operands; its meaning is what is
worked out. Else the meaning is a terminal of the grammar in reader.py, some with a value:
`call`, `list` and `value` with the Python for it, `num START STEP` for phrases that semicolons
separate, `scale` and `part` for thousands and thirds, `unit KIND SIZE`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_WORDS = Path(__file__).with_name("words")
FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LETTER = rf"[^\W\d_²³¹⁰-₉{FRACTIONS}]"
_RAW = r"""
    (?P<date> (?<![\d.,/-]) (?: \d{4}(?P<_a>[-/.])\d\d?(?P=_a)\d\d? | \d\d(?P<_b>-)\d\d(?P=_b)\d{4}
      | \d\d?(?P<_c>[./])\d\d?(?P=_c)\d{4} ) (?![\d.,/-]*\d) )
  | (?P<clock> (?<![\d:.,]) (?: \d{1,2}:[0-5]\d (?: :[0-5]\d)? (?! [\d:.,]) (?: \s?[ap]\.?m\b\.?)?
      | \d{1,2}\s?[ap]\.?m\b\.?) )
  | (?P<number> (?: (?: \d{1,3}(?:[SPACE'’]\d{3})+(?!\d) | \d+ ) (?: [.COMMA]\d+ )* | [.]\d+ )
      (?: e[-+]?\d{1,3}(?!\w) )? )
  | (?P<power> [⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+ ) | (?P<subscript> [₀₁₂₃₄₅₆₇₈₉]+ ) | (?P<vulgar> [FRACTIONS] )
  | (?P<python> math\.\w+ ) | (?P<word> LETTER+(?:['’]LETTER+)* )
  | (?P<sign> \*\* | // | [<>=!]= | <> | -> | => | \S )
"""
_HYPHEN = re.compile(rf"(?<={_LETTER}{{3}})-(?={_LETTER}{{2}})")


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


@dataclass(frozen=True)
class _Lexicon:
    phrases: dict[str, list[tuple[tuple[str, ...], dict[str, Any]]]] = field(default_factory=dict)
    forms: dict[str, list[Form]] = field(default_factory=dict)


def tokens(text: str, *, commas: bool, spaces: bool) -> list[Token] | None:
    """Cut a text in lower case; None if it has a word that no language knows, or 0x1f.

    `commas` and `spaces` tell whether such a sign may belong to a number.
    """
    if re.search(r"\b0[xbo]", text):
        return None
    raw = list(_raw(text, commas, spaces))
    found: list[Token] = []
    position = 0
    while position < len(raw):
        word, kind, glued = raw[position]
        size = 1
        roles: dict[str, Any] = {word if kind == "sign" else kind: word}
        for phrase, meanings in _lexicon().phrases.get(word, ()):
            if (
                meanings.keys() == {"form"}
                and _is_unit(word)
                and found
                and "number" in found[-1].roles
            ):
                continue  # `10 days from now`, not `days from A to B`
            if phrase == tuple(each[0] for each in raw[position : position + len(phrase)]):
                size, word = len(phrase), " ".join(phrase)
                roles = meanings if size > 1 else roles | meanings
                break
        else:
            if kind == "word" and (number := _joined(word)):
                roles = {"num": number}
            elif kind == "word" and len(word) > 1 and not re.fullmatch("[0-9a-f]+", word):
                return None
        found.append(Token(word, roles, glued))
        position += size
    return found


def forms(phrase: str) -> list[Form]:
    """The forms that begin with a phrase, or with an operand and then the phrase."""
    return _lexicon().forms.get(phrase, [])


def _raw(text: str, commas: bool = False, spaces: bool = False) -> Iterator[tuple[str, str, bool]]:
    end = 0
    for match in _pattern(commas, spaces).finditer(_HYPHEN.sub(" ", text)):
        yield match[0].replace("’", "'"), match.lastgroup or "", match.start() == end
        end = match.end()


@cache
def _pattern(commas: bool, spaces: bool) -> re.Pattern[str]:
    parts = {
        "SPACE": " " * spaces,
        "COMMA": "," * commas,
        "FRACTIONS": FRACTIONS,
        "LETTER": _LETTER,
    }
    return re.compile(re.sub("[A-Z]{5,}", lambda match: parts[match[0]], _RAW), re.VERBOSE)


@cache
def _lexicon() -> _Lexicon:
    """Read the files, once, when the first text is read: it takes 10 ms."""
    found = _Lexicon()
    meanings: dict[str, dict[str, Any]] = {}
    for file in sorted(_WORDS.glob("*.txt")):
        for line in file.read_text("utf-8").splitlines():
            meaning, _, rest = line.partition(": ")
            for index, phrases in enumerate(rest.split("; ")):
                for phrase in phrases.split(" | ") if rest and line[0] != "#" else ():
                    parts = tuple(filter(None, re.split(r" ?\b([ABU])\b ?", phrase)))
                    if len(parts) > 1:
                        found.forms.setdefault(parts[parts[0] == "A"], []).append((meaning, parts))
                    for each in parts if len(parts) > 1 else _inflected(phrase):
                        roles = meanings.setdefault(
                            " ".join(w for w, _, _ in _raw(each.lower())), {}
                        )
                        if len(parts) > 1:
                            roles["form"] = each
                        else:
                            _add(roles, meaning, index, rest)
    for text, roles in meanings.items():
        words = tuple(text.split())
        found.phrases.setdefault(words[0], []).append((words, roles))
    for entries in found.phrases.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return found


def _inflected(phrase: str) -> list[str]:
    if not (match := re.search(r"\(([^)]*)\)", phrase)):
        return [phrase]
    before, after = phrase[: match.start()], phrase[match.end() :]
    return [form for end in match[1].split("|") for form in _inflected(before + end + after)]


def _add(roles: dict[str, Any], meaning: str, index: int, phrases: str) -> None:
    head, _, value = meaning.partition(" ")
    if head == "num":
        start, step = value.split()
        roles["num"] = int(start) + index * int(step)
    elif head == "unit":
        kind, size = value.split()
        symbol = phrases.split(" | ", maxsplit=1)[0]
        roles.setdefault("unit", []).append(Unit(kind, Fraction(size), symbol))
    else:
        roles[head] = int(value) if value.isdigit() else value or head


@cache
def _german() -> re.Pattern[str]:
    words = [phrase for phrase, entries in _lexicon().phrases.items() if 0 < _num(phrase) < 100]
    some = "|".join(sorted(words, key=len, reverse=True))
    return re.compile(rf"(?:({some})?(hundert))?(?:und)?(?:({some})und)?({some})?")


def _num(word: str) -> int:
    entries = _lexicon().phrases.get(word)
    return entries[-1][1].get("num", 0) if entries and len(entries[-1][0]) == 1 else 0


def _is_unit(word: str) -> bool:
    return any("unit" in roles for phrase, roles in _lexicon().phrases[word] if len(phrase) == 1)


def _joined(word: str) -> int:
    """The value of a German number in one word, such as fünfundzwanzig, or 0."""
    match = _german().fullmatch(word)
    if not match:
        return 0
    hundreds = (_num(match[1] or "") or 1) * 100 if match[2] else 0
    return hundreds + _num(match[3] or "") + _num(match[4] or "")
