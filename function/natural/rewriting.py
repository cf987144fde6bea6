"""Proposes the Python for what people write to a calculator: `15% of 200`, `sqrt 16`, `2π`.

A proposal is only ever shown, never run. It comes out of tables of patterns that a person can
extend: whatever they make of a text is dropped unless it parses and names nothing unknown.
"""

import ast
import builtins
import keyword
import math
import re
import unicodedata
from collections.abc import Callable

from function.natural import sentences
from function.natural.typography import parses, plain
from sandbox import parse

LONGEST = 200  # characters; a longer text is a program, and the patterns are only for less

Step = tuple[str, str | Callable[[re.Match[str]], str]]  # a pattern, and what stands for it

MATH = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh sqrt cbrt isqrt exp log2 log10 log1p hypot "
    "factorial comb perm gcd lcm floor ceil trunc degrees radians prod dist fsum fmod isclose "
    "pi tau e inf nan"
)
NAMES = {name: f"math.{name}" for name in MATH.split()} | {
    "ln": "math.log",
    "lg": "math.log10",
    "log": "math.log10",
    "tg": "math.tan",
    "arcsin": "math.asin",
    "arccos": "math.acos",
    "arctan": "math.atan",
    "arctg": "math.atan",
    "ceiling": "math.ceil",
    "fact": "math.factorial",
    "ncr": "math.comb",
    "npr": "math.perm",
    "infinity": "math.inf",
    "randint": "random.randint",
    "randrange": "random.randrange",
    "choice": "random.choice",
}
"""What people call it, in lower case, and what Python does; `log` as on a pocket calculator."""

OPERATORS = {
    "plus|added to|плюс|más|und": " + ",
    "minus|минус|menos|moins": " - ",
    "times|multiplied by|умноженное на|умножить на|умножь на|por|multiplicado por|fois|mal": " * ",
    "(?:integer|floor) divided by|div": " // ",
    "divided by|over|разделить на|делить на|поделить на|dividido (?:por|entre)|entre|"
    "divisé par|geteilt durch|durch": " / ",
    "modulo|modulus|mod": " % ",
    "(?:raised )?to the power(?: of)?|raised to|power|pow|в степени|elevado a(?: la)?|hoch": "**",
    "squared|в квадрате|al cuadrado|au carré|quadrat": "**2",
    "cubed|в кубе|al cubo|au cube": "**3",
    "(?:the )?(?:square root|root|sqrt) of|(?:квадратный )?корень из|"
    "raíz (?:cuadrada )?de|racine (?:carrée )?de|wurzel(?: aus| von)?": " sqrt ",
    "(?:the )?(?:cube|cubic) root of|кубический корень из": " cbrt ",
    "factorial of|факториал": " factorial ",
    "half of|половина(?: от)?": "1/2*",
    "double|twice": "2*",
    "thousand|тысяч[аи]?|тыс": "*1000",
    "millions?|миллион(?:а|ов)?|млн": "*10**6",
    "billions?|миллиард(?:а|ов)?|млрд": "*10**9",
    "per ?cent|процент(?:а|ов)?|prozent|por ciento|pour ?cent": "%",
    "degrees|deg|градус(?:а|ов)?|grad|grados": "°",
    "(?:is )?equals?(?: to)?": " == ",
    "(?:is )?(?:greater|more|bigger) than": " > ",
    "(?:is )?(?:less|smaller) than": " < ",
}
"""Operators in words. Of two that begin alike the longer comes first."""

_NUMBER = r"(?<![\w.])\d+(?:\.\d+)?"
_DIGITS = dict(
    zip(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        map(str, range(11)),
        strict=True,
    )
)
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_FUNCTION = "|".join(sorted(NAMES, key=len, reverse=True))
_KEPT = f"(?:{_FUNCTION}|abs|round|int|float|min|max|sum|math|dt|x|х|π)"
_LETTERS = rf"[^\W\d_{_SUPERSCRIPTS}{_FRACTIONS}]++"
# Taken as (?=(...))\1, so that no part is given back: before Python 3.11.5 possessive groups
# keep what they took before they failed.
_WORD = rf"(?!{_KEPT}(?![^\W\d_])){_LETTERS}(?:['’-]{_LETTERS})*(?:[.,:;!]++(?!\w))?"


def suggest(source: str) -> str | None:
    """Return the Python that a short natural text may have meant, or None.

    It has several lines only where one expression will not do. Never raises; takes time linear in
    the length of `source`.
    """
    program = lower_keywords(source)
    if program != source and parses(program):
        return program
    if len(source) > LONGEST:
        return None
    closed = source.rstrip() + _unclosed(source)
    if closed != source.rstrip() and parses(closed):
        return closed
    text = re.sub(r"[ \t]+", " ", plain(source).strip())
    if "\n" in text:
        return None
    proposal = sentences.rewrite(text) or _rewrite_arithmetic(text)
    return proposal if proposal != source and _is_sensible(proposal, source) else None


def lower_keywords(source: str) -> str:
    """Return `source` with the capitals undone that phones put at the start of a sentence."""
    source = _CAPITAL_KEYWORD.sub(lambda match: match[0].lower(), source)
    source = _CAPITAL_NAME.sub(lambda match: _LOWER.get(match[0].lower(), match[0]), source)
    return _OF_MATH.sub(lambda match: _LOWER_MATH.get(match[0].lower(), match[0]), source)


_KEYWORDS = [word.capitalize() for word in keyword.kwlist if word.islower()]
_CAPITAL_KEYWORD = re.compile(rf"^[ \t]*+(?:{'|'.join(_KEYWORDS)})\b", re.MULTILINE)
_CAPITAL_NAME = re.compile(r"(?<![\w.])[A-Z][A-Za-z]*+(?=\s?[(.])")
_LOWER = {name: name for name in (*dir(builtins), "math", "random", "json") if name.islower()}
_OF_MATH = re.compile(r"(?<=\bmath\.)[A-Z]\w*+")
_LOWER_MATH = {name: name for name in dir(math)}


def _unclosed(source: str) -> str:
    """Return the round brackets that are missing at the end."""
    return ")" * (source.count("(") - source.count(")"))


def _decimal_comma(match: re.Match[str]) -> str:
    has_arguments = re.search(r"[^\W\d]\(|\[", match.string)
    return match[0] if has_arguments else f"{match[1]}."


def _of_percent(match: re.Match[str]) -> str:
    base = match["base"].strip()
    if not re.fullmatch(r"[\d.]+|\([^()]*\)", base):
        base = f"({base})"
    return f"{base}*(1{match['sign']}{match['percent']}/100)"


def _superscript(match: re.Match[str]) -> str:
    return "**" + unicodedata.normalize("NFKC", match[0]).replace("\u2212", "-")


def _fraction(match: re.Match[str]) -> str:
    part = unicodedata.normalize("NFKC", match["part"]).replace("\u2044", "/")
    if match["whole"]:
        return f"({match['whole']}+{part})"
    before, after = match.string[: match.start()].rstrip(), match.string[match.end() :].lstrip()
    is_operand = before.endswith(("/", "^", "√")) or after.startswith(("^", *_SUPERSCRIPTS))
    return f"({part})" if is_operand else part


def _call(match: re.Match[str]) -> str:
    return f"{match['name']}({match['argument']})"


def _degrees(match: re.Match[str]) -> str:
    angle, is_degrees = match["angle"], match["sign"] or float(match["angle"]) >= 10
    return f"math.{match['name'].lower()}({f'math.radians({angle})' if is_degrees else angle})"


_WORDS: tuple[Step, ...] = (
    (r"(?<=\d)k\b", "*1000"),
    (r"(?<=[\d)])\s*(?:factorial|факториал)\b", "!"),
    *((rf"\b{word}\b", digit) for word, digit in _DIGITS.items()),
    *(
        (rf"\s*\b(?:{words})\b" + r"\s*" * symbol.endswith(" "), symbol)
        for words, symbol in OPERATORS.items()
    ),
)
_STRAY: tuple[Step, ...] = (
    # money
    (r"[$€£¥₽₹₴₩₿]\s*", ""),
    (rf"(?<=\d)\s*(?:{sentences.CURRENCY})\b\.?", ""),
    # words around the sum, in any language
    (rf"\A(?=((?:{_WORD}\s*+)+))\1(?=[-\d(√πmd|]|\.\d|{_KEPT}\b)", ""),
    (rf"(?<=[\d)%!°πx=½²³])(?=((?:\s*+{_WORD})+))\1\Z", ""),
    (rf"(?<=\d)\s+(?=({_WORD}))\1(?=\s*[-+*/)])", ""),
    (r"(?:(?<=\d)\.)?(?:->|=>|[\s=:?])+\Z", ""),
    (r"(?<=\d)[ ’'](?=\d{3}(?!\d))", ""),
)
_SYMBOLS: tuple[Step, ...] = (
    # separators of thousands and of decimals
    (r"(?<![\w.,])[1-9]\d{0,2}(?:\.\d{3})+(?=,\d)", lambda match: match[0].replace(".", "")),
    (r"(?<![\w.,])[1-9]\d{0,2}(?:\.\d{3}){2,}(?![\d.])", lambda m: m[0].replace(".", "")),
    (r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}(?![\d,])", lambda m: m[0].replace(",", "")),
    (r"(?<![\w,\[])(\d+),(?=\d+(?![\d,]))", _decimal_comma),
    (r"(?<![\w.])0+(?=[1-9])", ""),
    # percentages
    (
        r"(?P<base>[^%]+?)\s*(?P<sign>[-+])\s*(?P<percent>\d+(?:\.\d+)?)\s*%\Z",
        _of_percent,
    ),
    (r"(\d+(?:\.\d+)?)\s*%\s*(?:tip\s+|tax\s+)?(?:o[fn]|von|от|из|de|du|di)\s+", r"\1/100*"),
    (r"(?<=/)\s*(\d+(?:\.\d+)?)\s*%(?!\s*[\w(])", r"(\1/100)"),
    (r"(\d+(?:\.\d+)?)\s*%(?!\s*[\w(])", r"\1/100"),
    # mathematical symbols
    (r"³√", "∛"),
    (rf"[{_SUPERSCRIPTS}]+", _superscript),
    (rf"(?:(?P<whole>\d+)\s?)?(?P<part>[{_FRACTIONS}])", _fraction),
    (r"√\s*(?=\()", "sqrt"),
    (r"√\s*(\w+(?:\.\d+)?)", r"sqrt(\1)"),
    (r"∛\s*\(?(\w+(?:\.\d+)?)\)?", r"cbrt(\1)"),
    (r"π", "pi"),
    (r"∞", "inf"),
    (r"\|([^|]+)\|", r"abs(\1)"),
    (r"\(([^()]+)\)!(?!=)", r"factorial(\1)"),
    (r"(\w+)!(?!=)", r"factorial(\1)"),
    (r"\^", "**"),
    (r"(?<=[\d)])(\s?)(?<!\b0)[xх](\s?)(?=[\d(.])", r"\1*\2"),
    (r"(?<=\d)(\s?):(\s?)(?=\d)", r"\1/\2"),
    # other languages' operators
    (r"&&", " and "),
    (r"\|\|", " or "),
    (r"<>", "!="),
    (r"=<", "<="),
    (r"=>", ">="),
    (r"={3}", "=="),
    (r"(?<=[\w)]);(?=[^()]*\))", ","),
    (r"\b(?:console\.log|system\.out\.println|printf)\(", "print("),
    (r"(?<=\d)i\b", "j"),
    (r"(?<![\w.])i\b", lambda m: "1j" if re.search(r"\dj\b", m.string) else m[0]),
    (r"(?<![<>=!])=(?!=)", " == "),
    # functions
    (
        (
            r"(?<![^\W\d_])(?P<name>sin|cos|tan)\s*\(?\s*(?P<angle>\d+(?:\.\d+)?)\s*(?P<sign>°?)\s*"
            r"(?:\)|(?![\w.)]))"
        ),
        _degrees,
    ),
    (rf"({_NUMBER})\s*°", r"math.radians(\1)"),
    (
        rf"\b(?P<name>{_FUNCTION}|abs|round|int|float)\s+(?:of\s+)?(?P<argument>-?(?:\d+(?:\.\d+)?|pi|e)\b)",
        _call,
    ),
    (r"\blog\((?=[^()]*,)", "math.log("),
    (
        rf"(?<![^\W\d_])(?<![\w.]_)(?<!\.)(?:{_FUNCTION})(?![\w.])",
        lambda match: NAMES[match[0].lower()],
    ),
    # what stands side by side is multiplied
    (rf"({_NUMBER}|\))\s*(?=\(|math\.)", r"\1*"),
    (r"(?<=\))\s*(?=[\w])(?!(?:and|or|if|else|in|not|is)\b)", "*"),
)
_ONE_SIDED = re.compile(r"(?<=[^\s*/])(\*\*?|//?)\s+")
_SPACED = re.compile(r"\s*(\*\*|//|[-+*/%])\s*")


def _rewrite_arithmetic(text: str) -> str:
    text = _apply(_WORDS, text).strip()
    stripped = _apply(_STRAY, text)
    proposal = _apply(_SYMBOLS, stripped)
    proposal = re.sub(
        r"(?<=[^\s*/])(\*\*?|//?)\s+", r"\1", re.sub(r"\s{2,}", " ", proposal)
    ).strip()
    if stripped != text:
        proposal = _SPACED.sub(r"\1", proposal)
    if re.fullmatch(r"\d{4,}", proposal) and re.fullmatch(r"[\d ,.'’]+", text):
        return f"{int(proposal):_}"
    return proposal + _unclosed(proposal)


def _apply(steps: tuple[Step, ...], text: str) -> str:
    for pattern, build in steps:
        text = sentences.compiled(pattern).sub(build, text)
    return text


_KNOWN = {*dir(builtins), "math", "random", "dt", "re", "json", "statistics", "Fraction"}
_VALUES = {"pi", "tau", "e", "inf", "nan", "days"}  # attributes that are no functions
_WORK = (ast.BinOp, ast.BoolOp, ast.Call, ast.Attribute, ast.Compare, ast.Assign, ast.AugAssign)


def _is_sensible(proposal: str, source: str) -> bool:
    """Tell whether it parses, has something to work out, and names nothing but what exists."""
    tree = parse(proposal)
    if not isinstance(tree, ast.Module):
        return False
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = _KNOWN | {node.id for node in names if isinstance(node.ctx, ast.Store)}
    inner = [node.func for node in nodes if isinstance(node, ast.Call)]
    inner += [node.value for node in nodes if isinstance(node, ast.Attribute)]
    return (
        all(node.id in known for node in names)
        and all(
            node.attr in _VALUES or node in inner
            for node in nodes
            if isinstance(node, ast.Attribute)
        )
        and (any(isinstance(node, _WORK) for node in nodes) or bool(re.match(r"[\W\d]+\Z", source)))
        and len(nodes) > 1  # the module itself
    )
