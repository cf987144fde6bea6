"""One line of help for answers that surprise, and for what is not Python at all.

`HINTS` is a table that a person can extend: the first row that fits is the hint. A hint never
changes what is run, nor the answer: it stands beside Python's own.
"""

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from function.natural import sentences
from function.natural.rewriting import LONGEST, NAMES, suggest
from function.parts import Parts, code, parts
from sandbox import Outcome


@dataclass(frozen=True)
class Case:
    """What was typed, the text as it ran, and what became of it."""

    source: str
    program: str
    tree: ast.Module | None
    outcome: Outcome

    @cached_property
    def error(self) -> str:
        """Python's error line, "rejected" and the names that it was for, else the kind."""
        match self.outcome.kind:
            case "syntax_error":  # IndentationError is a kind of it, and a hint fits both
                return "SyntaxError: " + self.outcome.error.partition(": ")[2]
            case "rejected":
                return " ".join(["rejected", *(one.value for one in self.outcome.violations)])
            case "error":
                return self.outcome.error
        return self.outcome.kind

    @cached_property
    def proposal(self) -> str | None:
        """The Python that may have been meant."""
        return suggest(self.source)

    @cached_property
    def missing(self) -> str:
        """The name that a NameError is about, else empty."""
        found = re.match(r"NameError: name '(\w+)' is not defined", self.outcome.error)
        return found[1] if found else ""


@dataclass(frozen=True)
class Hint:
    """A row of the table: a text, and where it fits. Every condition that is given must hold.

    Code in the text stands in backticks, which are read before anything is put in.

    `source` is searched for in the program, if that is short, and `error` in the error line.
    `value` is for what a pattern cannot tell: it returns the text for `{value}`, or None. Where
    `{proposal}` or `{missing}` is in the text, the case must have one.
    """

    text: str
    source: str = ""
    error: str = ""
    value: Callable[[Case], str | None] | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)

    def fit(self, case: Case) -> Parts:
        """Return the text for a case whose error line fits, or no parts."""
        if self.source and not (
            len(case.program) <= LONGEST and self._pattern.search(case.program)
        ):
            return ()
        values = {"value": self.value(case) if self.value else ""}
        if "{proposal}" in self.text:
            values["proposal"] = case.proposal or None
        if "{missing}" in self.text:
            values["missing"] = case.missing or None
        if None in values.values():
            return ()
        text = self.text.replace("{proposal}", "")
        pieces = text.split("`")
        found = parts(
            *(
                code(piece.format(**values)) if index % 2 else piece
                for index, piece in enumerate(pieces)
                if piece
            )
        )
        if (proposal := values.get("proposal")) is None:
            return found
        return found + parts("\n" if "\n" in proposal else " ", code(proposal))


def hint(typed: str, program: str, tree: ast.Module | None, outcome: Outcome) -> Parts:
    """Return a line of help for what was typed and its outcome; no parts where none is due.

    `program` is the text as it ran, `tree` what it parses to. Code of several lines follows the
    sentence on lines of its own. Never raises; takes time linear in the length of `typed`.
    """
    case = Case(typed, program, tree, outcome)
    return next((found for row in _rows(case.error) if (found := row.fit(case))), ())


@lru_cache(256)  # nearly all programs end in the same few ways
def _rows(error: str) -> tuple[Hint, ...]:
    return tuple(row for row in HINTS if re.search(row.error, error))


def _exact(node: ast.expr) -> Fraction | None:
    """Work out a sum of literals as it is done on paper; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as number):
            try:
                return Fraction(str(number))
            except ValueError:  # infinity
                return None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return None if (value := _exact(operand)) is None else -value
        case ast.BinOp(left=left, op=operator, right=right):
            one, other = _exact(left), _exact(right)
            if one is None or other is None:
                return None
            match operator:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult():
                    return one * other
                case ast.Div() if other:
                    return one / other
    return None


def _expression(case: Case) -> ast.expr | None:
    match case.tree if len(case.program) <= LONGEST else None:
        case ast.Module(body=[ast.Expr(value=value)]):
            return value
    return None


def _rounding(case: Case) -> str | None:
    """Find a sum whose answer is not the float nearest to the exact one, such as 0.1+0.2."""
    shown = case.outcome.output.strip()
    if not re.fullmatch(r"-?\d{1,9}\.\d{12,}", shown) or not (expression := _expression(case)):
        return None
    exact = _exact(expression)
    if exact is None or (exact * 10**10).denominator != 1 or shown == repr(float(exact)):
        return None
    return f"round({case.program}, 10)"


def _inexact_comparison(case: Case) -> str | None:
    match _expression(case) if "==" in case.program else None:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            exact = _exact(left)
            if exact is not None and exact == _exact(right):
                return f"math.isclose({ast.unparse(left)}, {ast.unparse(right)})"
    return None


def _powers(case: Case) -> str:
    return case.program.replace("^", "**")


def _has_read_dash(case: Case) -> str | None:
    return "" if "—" in case.source and case.source != case.program else None


def _of_math(case: Case) -> str | None:
    return NAMES.get(case.missing.lower())


def _without_capital(case: Case) -> str | None:
    return _CONSTANTS.get(case.missing.lower())


def _import_for(case: Case) -> str | None:
    if case.missing in sys.stdlib_module_names:
        return f"import {case.missing}"
    module = _MODULES.get(case.missing)
    return module and f"from {module} import {case.missing}"


def _quoted(case: Case) -> str | None:
    """Find text that was printed without quotes."""
    found = re.fullmatch(r"\s*print\(\s*([^\W\d]\w*)\s*\)\s*", case.program)
    return f'print("{found[1]}")' if found and found[1] == case.missing else None


_CONSTANTS = {"true": "True", "false": "False"} | dict.fromkeys(
    ("none", "null", "nil", "undefined"), "None"
)
_MODULES = {
    name: module
    for module, names in {
        "collections": "Counter OrderedDict defaultdict deque namedtuple",
        "dataclasses": "dataclass field",
        "datetime": "date datetime timedelta timezone",
        "decimal": "Decimal getcontext",
        "fractions": "Fraction",
        "functools": "cache lru_cache partial reduce",
        "itertools": "accumulate chain combinations count cycle groupby islice pairwise "
        "permutations product repeat zip_longest",
        "statistics": "mean median mode pstdev stdev variance",
        "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
    }.items()
    for name in names.split()
}
"""Names that people use without importing them, and the module that each is in."""

_ARITHMETIC = r"\A[\d\s.,+\-*/%()]+\Z"

HINTS: tuple[Hint, ...] = (
    # Right in Python, and a surprise
    Hint(
        "For example, write `n = 5` instead of `n = input()`.",
        error=r"\Arejected (?:.* )?input\b",
    ),
    Hint(
        "In Python `^` is exclusive or (XOR); a power is written `**`: `{value}`",
        source=r"\A[\d\s.+\-*/%()]*[\d)]\s*\^[\d\s.+\-*/%()^]+\Z",
        error=r"\A(?:ok\Z|TypeError)",
        value=_powers,
    ),
    Hint(
        "In Python `^` is exclusive or (XOR); a power is written `**`.",
        error=r"\ATypeError: unsupported operand type\(s\) for \^=?: .*'float'",
    ),
    Hint(
        "In Python a comma separates values; digits are grouped by `_`:{proposal}",
        source=r"\A[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}\Z",
        error=r"\Aok\Z",
    ),
    Hint(
        "In Python a comma separates values; the decimal sign is a point:{proposal}",
        source=rf"(?={_ARITHMETIC})(?!\([\d.,]+\)\Z).*\d,\d",
        error=r"\A(?:ok\Z|TypeError)",
    ),
    Hint(
        "In Python this is a sum of whole numbers; dates are made by `dt`:{proposal}",
        source=r"\A(?:\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{4})(?:\s*-\s|\Z)",
        error=r"\Aok\Z",
    ),
    Hint(
        "In Python a colon after a name says what kind of value it has:{proposal}",
        source=r"\A[^\W\d]\w*\s*:\s*[\d(][^\n]*\Z",
        error=r"\Aok\Z",
    ),
    Hint(
        "Floats are binary and hold most decimal fractions inexactly: `{value}`",
        error=r"\Aok\Z",
        value=_rounding,
    ),
    Hint(
        "Floats are binary and hold most decimal fractions inexactly: `{value}`",
        error=r"\Aok\Z",
        value=_inexact_comparison,
    ),
    Hint(
        "The dash `—` was read as a minus sign.", error=r"\A(?:ok\Z|\w+Error)", value=_has_read_dash
    ),
    Hint("`sum` takes one list:{proposal}", error=r"\ATypeError: sum\(\) takes"),
    # A name that is not there
    Hint(
        "In Python `log` is `math.log`, the natural logarithm; to base 10:{proposal}",
        source=r"\A\s*log\b(?!.*,)",
        error=r"\ANameError: name 'log'",
    ),
    Hint(
        "`{missing}` is `math.{missing}`, and its angle is in radians; of degrees:{proposal}",
        source=r"\b(?:sin|cos|tan)\(\s*\d\d",
        error=r"\ANameError: name '(?:sin|cos|tan)'",
    ),
    Hint("In Python:{proposal}", error=r"\ANameError"),
    Hint("In Python `{missing}` is written `{value}`.", error=r"\ANameError", value=_of_math),
    Hint(
        "In Python `{missing}` is written `{value}`.", error=r"\ANameError", value=_without_capital
    ),
    Hint("`{missing}` must be imported first: `{value}`", error=r"\ANameError", value=_import_for),
    Hint("Text stands in quotes: `{value}`", error=r"\ANameError", value=_quoted),
    Hint(
        "Programs remember nothing of each other: every message starts afresh.",
        error=r"\ANameError: name '(?:ans|Ans|_|res|result|answer)'",
    ),
    # Not Python
    Hint(
        "There is no network here, so no exchange rates: multiply by the rate yourself, "
        "as in `5 * 0.92`.",
        source=rf"(?i)(?:{sentences.CURRENCY}|[$€£¥₽₹₴₩₿]).*\b(?:to|in|into|в|nach|en|a)\b.*"
        rf"(?:\b(?:{sentences.CURRENCY})\b|[$€£¥₽₹₴₩₿])",
    ),
    Hint(
        "There is no equation solver here; this works it out:{proposal}",
        source=r"(?i)\A\W*(?:solve|find|roots?|реши\w*)\b.*=|[\d)][a-z]\b.*=|[a-z]\s*[-+*/^²].*=",
        error=r"\ASyntaxError",
    ),
    Hint(
        "There is no algebra with symbols here, only with numbers: put them in, as in "
        "`x = 2; x**2 - 5*x + 6`.",
        source=r"(?i)\b(?:solve|derivative|derive|differentiate|integrate|integral|limit|factori[sz]e|"
        r"factor|simplify|expand|d/dx|реши\w*|производн\w+|интеграл\w*)\b|∫",
        error=r"\A(?:Syntax|Name)Error",
    ),
    Hint(
        "Nothing can be drawn here; a table of values can be printed: "
        "`for x in range(5): print(x, x**2)`",
        source=r"(?i)\b(?:plot|graph|draw|график)\b",
        error=r"\A(?:Syntax|Name)Error",
    ),
    Hint(
        "Dates and times are made by `dt`, the datetime module:{proposal}",
        source=r"\d{4}-\d\d?-\d|\d[./]\d\d?[./]\d{4}|\d:\d\d",
        error=r"\ASyntaxError",
    ),
    Hint(
        "A number does not begin with 0 in Python:{proposal}",
        error=r"\ASyntaxError: leading zeros in decimal integer",
    ),
    Hint(
        "Percent of what? A pocket calculator takes it of what stands before:{proposal}",
        source=r"[-+]\s*\d+(?:\.\d+)?\s*%\s*\Z",
        error=r"\A(?:Syntax|Name)Error",
    ),
    Hint("A percent is a hundredth:{proposal}", source=r"%", error=r"\ASyntaxError"),
    Hint(
        "Multiplication is always written `*`:{proposal}",
        error=r"\ATypeError: .* object is not callable",
    ),
    Hint(
        "A single `=` gives a name to a value; to compare:{proposal}",
        error=r"\ASyntaxError: cannot assign to",
    ),
    Hint("In Python:{proposal}", error=r"\ASyntaxError"),
    Hint(
        "Send something to work out, such as `2+2`, or a whole Python program; /help tells more.",
        source=r"\A(?:/?[^\W\d_][^\d+*/=()\[\]{}<>^%#\"]*|[?!¿¡.\s]+)\Z",
        error=r"\A(?:(?:Syntax|Name)Error|rejected (?:help|exit|quit|license|credits)\Z)",
    ),
)
