"""Parts of a calculation in Python, with brackets where they belong, and what they measure."""

import ast
import calendar
import re
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from function.natural.lexicon import Token, Unit

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)  # how tightly Python binds an expression
NUMBERS = ("", "%")

_TEMPERATURES = {
    "°C°F": "A*9/5+32",
    "°F°C": "(A-32)*5/9",
    "°CK": "A+273.15",
    "K°C": "A-273.15",
    "°FK": "(A-32)*5/9+273.15",
    "K°F": "(A-273.15)*9/5+32",
}
_BASES = {2: "bin({})", 8: "oct({})", 10: "{}", 16: "hex({})"}
_TIMES = {1: "seconds", 60: "minutes", 3600: "hours", 86400: "days", 604800: "weeks"}

Polynomial = tuple[Fraction, Fraction, Fraction]  # the coefficients of 1, x and x**2


class NoReadingError(Exception):
    """A text does not follow the grammar, or says nothing sensible; its argument may say why."""


def check(condition: object, refusal: str = "") -> None:
    """Raise NoReadingError unless a condition holds."""
    if not condition:
        raise NoReadingError(refusal)


def polynomial(node: ast.expr) -> Polynomial | None:
    """The exact coefficients of an expression in x; None for anything else."""
    zero = Fraction(0)
    match node:
        case ast.Constant(value=int() | float() as number) if abs(number) < 1e100:
            return Fraction(str(number)), zero, zero
        case ast.Name(id="x"):
            return zero, Fraction(1), zero
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return polynomial(ast.BinOp(ast.Constant(-1), ast.Mult(), operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            return polynomial(ast.BinOp(left, ast.Mult(), left))
        case ast.BinOp(left=left, op=operator, right=right):
            one, other = polynomial(left), polynomial(right)
            if one is None or other is None:
                return None
            (a, b, c), (d, e, f) = one, other
            match operator:
                case ast.Add():
                    return a + d, b + e, c + f
                case ast.Sub():
                    return a - d, b - e, c - f
                case ast.Mult() if not (c * e or b * f or c * f):
                    return a * d, a * e + b * d, a * f + b * e + c * d
                case ast.Div() if d and not (e or f):
                    return a / d, b / d, c / d
    return None


class Term(NamedTuple):
    """A subtree, written in Python: how tightly it binds, and what it measures ("%" for percent).

    `ends` tells how it was typed at its end, which decides what may stand beside it.
    """

    text: str
    level: int = ATOM
    kind: str = ""
    unit: Unit | None = None
    ends: str = ""

    def at(self, level: int) -> str:
        """Its text, in brackets where it binds less tightly."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def polynomial(self) -> Polynomial | None:
        """Its coefficients, where it is a polynomial in x."""
        return polynomial(ast.parse(self.text, mode="eval").body)

    @property
    def value(self) -> Fraction | None:
        """Its exact value, where it consists of numbers and the four operations."""
        poly = self.polynomial
        return poly[0] if poly and not any(poly[1:]) else None


TODAY = Term("dt.date.today()", kind="date")


def decimal(value: Fraction) -> str:
    """A number as Python writes it."""
    return str(value) if value.denominator == 1 else repr(float(value))


def fraction(value: Fraction) -> Term:
    """A number as `2+1/3`."""
    whole, part = divmod(value, 1)
    if not part or not whole:
        return Term(str(value), PRODUCT if part else ATOM, ends="part")
    return Term(f"{whole}+{part}", SUM, ends="part")


def date(year: int, month: int, day: int) -> Term:
    """A day that exists."""
    check(1000 <= year <= 9999 and 1 <= month <= 12)
    check(1 <= day <= calendar.monthrange(year, month)[1])
    return Term(f"dt.date({year}, {month}, {day})", kind="date")


def quantity(number: Term, unit: Unit) -> Term:
    """A number of units; of time, a timedelta."""
    if unit.kind != "time":
        return number._replace(kind=unit.kind, unit=unit, ends="")
    name = _TIMES.get(int(unit.size), "milliseconds")
    return Term(f"dt.timedelta({name}={number.text})", kind="time", unit=unit)


def negative(term: Term, sign: str = "-") -> Term:
    """A term with a sign before it."""
    return term._replace(text=sign + term.at(SIGN), level=SIGN, ends="")


def added(sign: str, left: Term, right: Term) -> Term:
    """A sum or difference; a percent is of what stands before it."""
    kind, unit, kinds = left.kind, left.unit, {left.kind, right.kind}
    if right.kind == "%" and kind not in ("%", "date", "temperature"):
        return Term(f"{left.at(PRODUCT)}*(1{sign}{right.text})", PRODUCT, kind, unit)
    if "date" in kinds:
        return _dated(sign, left, right)
    if kinds <= {"", "%"}:
        kind = ""
    elif kinds == {"", "money"}:
        kind, unit = "money", unit or right.unit
    else:
        check(kind == right.kind and kind != "temperature")
        check(kind != "money" or unit == right.unit, "exchange")
        right = _rescaled(right, unit) if unit and kind != "time" else right
    other = right.at(POWER if right.level == SIGN else PRODUCT)
    return Term(f"{left.at(SUM)}{sign}{other}", SUM, kind, unit)


def _dated(sign: str, left: Term, right: Term) -> Term:
    if left.kind == right.kind and sign == "-":
        return Term(f"({left.text}-{right.text}).days")
    check(left.kind == "date" and right.unit)
    size = right.unit.size if right.unit else Fraction(0)
    if right.kind == "time" and size >= _DAY:
        return Term(f"{left.text}{sign}{right.text}", SUM, "date")
    today = f"{datetime.now(UTC):dt.date(%Y, %m, %d)}"
    text = today if left == TODAY else left.text
    match, count = re.fullmatch(r"dt\.date\((\d+), (\d+), (\d+)\)", text), right.value
    check(match and right.kind == "calendar" and count is not None and count.denominator == 1)
    year, month, day = map(int, match.groups()) if match else (0, 0, 0)
    months = int((count or 0) * size)
    year, month = divmod(year * 12 + month - 1 + (months if sign == "+" else -months), 12)
    check(1000 <= year <= 9999)
    return date(year, month + 1, min(day, calendar.monthrange(year, month + 1)[1]))


_DAY = 86400


def multiplied(sign: str, left: Term, right: Term) -> Term:
    """A product, quotient or remainder."""
    kind, unit = "", None
    check(not {left.kind, right.kind} & {"date", "temperature"})
    if sign == "/" and left.kind == right.kind and left.kind not in NUMBERS:
        check(left.kind != "money" or left.unit == right.unit, "exchange")
        right = _rescaled(right, left.unit) if left.unit and left.kind != "time" else right
    elif right.kind in NUMBERS:
        kind, unit = left.kind.replace("%", ""), left.unit
    else:
        check(left.kind in NUMBERS and sign == "*")
        kind, unit = right.kind, right.unit
    text = f"{left.at(PRODUCT)}{' % ' if sign == '%' else sign}{right.at(SIGN)}"
    return Term(text, PRODUCT, kind, unit, right.ends.strip("%") if sign == "*" else "")


def raised(base: Term, exponent: Term) -> Term:
    """A power."""
    check(base.kind in NUMBERS and not exponent.kind)
    return Term(f"{base.at(ATOM)}**{exponent.at(SIGN)}", POWER, ends=base.ends and "!")


def called(template: str, slots: dict[str, Term], kinds: tuple[str, ...] = NUMBERS) -> Term:
    """The Python for a function or a form, such as `math.log(A, B)`, with its operands put in."""
    check(all(slots[name].kind in kinds for name in "AB" if name in template and name in slots))
    if template == "math.sqrt(A)" and (value := slots["A"].value) and value < 0:
        return Term(f"math.sqrt({decimal(-value)})*1j", PRODUCT)

    def put(match: re.Match[str]) -> str:
        is_enclosed = match["open"] is not None and match["close"] is not None
        return slots[match["name"]].at(SUM if is_enclosed else ATOM)

    slot = r"(?P<open>(?<=[(\[])|(?<=, ))?\b(?P<name>[AB])\b(?P<close>(?=[)\],]))?"
    is_call = re.fullmatch(r"[\w.]+\(.*\)", template)
    level = ATOM if is_call else POWER if "**" in template else PRODUCT
    kind = "deg" if template.startswith("math.degrees") else ""
    return Term(re.sub(slot, put, template), level, kind, ends=")")


def in_base(digits: str, source: int, target: int) -> Term:
    """Digits of one base as a number in another."""
    check(digits and all(int(digit, 36) < source for digit in digits))
    return Term(_BASES[target].format(f'int("{digits}", {source})'))


def solved(left: Term, right: Term) -> Term:
    """The roots of a linear or quadratic equation in x."""
    poly = Term(f"{left.text} - ({right.text})").polynomial
    is_given = left.text == "x" and right.value is not None  # x = 5
    check(poly and any(poly[1:]) and not is_given)
    c, b, a = poly or (Fraction(0),) * 3
    if not a:
        top, bottom = (-c, b) if b > 0 else (c, -b)
        return Term(f"{decimal(top)}/{decimal(bottom)}".removesuffix("/1"), PRODUCT)
    root = f"{Term(decimal(b * b - 4 * a * c), SUM if b * b < 4 * a * c else ATOM).at(ATOM)}**0.5"
    under = f"({decimal(2 * a)})" if a < 0 else decimal(2 * a)
    first, second = (f"{decimal(-b) if b else ''}{sign}{root}".lstrip("+") for sign in "+-")
    return Term(f"(({first})/{under}, ({second})/{under})")


def converted(term: Term, target: Token) -> Term:
    """A term in the unit, or as the percent, fraction or digits, that a token names."""
    roles, is_number = target.roles, term.kind in NUMBERS
    if "%" in roles and is_number:
        return Term(f"{term.at(PRODUCT)}*100", PRODUCT, "percent")
    if "fraction" in roles and is_number:
        return _as_fraction(term.text)
    if "base" in roles and not term.kind and roles["base"] != 10:
        return Term(_BASES[roles["base"]].format(term.text))
    if "rad" in roles and term.kind == "deg":
        return Term(f"math.radians({term.text})")
    if "deg" in roles and "math." in term.text and term.kind in ("", "deg", "rad"):
        is_done = term.text.startswith("math.degrees")
        return term if is_done else Term(f"math.degrees({term.text})", kind="deg")
    for unit in roles.get("unit", ()):
        check(unit.kind != "money" or term.kind != "money", "exchange")
        kind, own = term.kind, term.unit or unit
        if (kind, unit.kind, own.size) == ("calendar", "time", 12):
            term, kind = Term(f"dt.timedelta(days={term.at(PRODUCT)}*365)"), "time"
        if kind == unit.kind == "temperature":
            check(own != unit)
            form = _TEMPERATURES[own.symbol + unit.symbol]
            return Term(form.replace("A", term.at(PRODUCT)), SUM, unit=unit)
        if kind == unit.kind == "time":
            one = quantity(Term("1"), unit)
            return Term(f"{term.at(PRODUCT)}/{one.text}", PRODUCT, "amount", unit)
        if kind == unit.kind:
            return _rescaled(term, unit)
    raise NoReadingError


def _as_fraction(text: str) -> Term:
    check("math." not in text)
    text = re.sub(r"(?<![\w.])\d*\.\d+(?:e-?\d+)?", r"Fraction('\g<0>')", text)
    text = re.sub(r"(?<![\w.'/*])(\d+)/(\d+)(?![\w.'])", r"Fraction(\1, \2)", text)
    check("Fraction(" in text)
    return Term(text)


def _rescaled(term: Term, unit: Unit) -> Term:
    """The same amount in another unit, by one exact factor if there is one."""
    ratio = (term.unit.size if term.unit else Fraction(1)) / unit.size
    if ratio == 1:
        return term._replace(unit=unit)
    text = f"{term.at(PRODUCT)}*{ratio.numerator}/{ratio.denominator}"
    factors = sorted([("*", ratio), ("/", 1 / ratio)], key=lambda each: each[1].denominator)
    for sign, factor in reversed(factors):
        if (factor * 10**12).denominator == 1 and factor >= Fraction(1, 1000):
            text = f"{term.at(PRODUCT)}{sign}{f'{float(factor):.12f}'.rstrip('0').rstrip('.')}"
    return Term(text, PRODUCT, unit.kind, unit)
