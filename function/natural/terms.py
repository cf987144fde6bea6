"""Parts of a calculation in Python, with brackets where they belong, and what they measure."""

import ast
import calendar
import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from function.natural.lexicon import Token, Unit

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)  # how tightly Python binds an expression
NUMBERS = ("", "%")

_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_TEMPERATURES = {
    "°C°F": "A*9/5+32",
    "°F°C": "(A-32)*5/9",
    "°CK": "A+273.15",
    "K°C": "A-273.15",
    "°FK": "(A-32)*5/9+273.15",
    "K°F": "(A-273.15)*9/5+32",
}
_BASES = {2: "bin(A)", 8: "oct(A)", 16: "hex(A)"}
_TIMES = {1: "seconds", 60: "minutes", 3600: "hours", 86400: "days", 604800: "weeks"}
_SYMPY = {"inf": "oo", "e": "E"}
_SYMPY_NAME = re.compile(
    "E|abs|a?(?:cos|sin|tan)|(?:cos|sin|tan)h|cbrt|diff|exp|expand|factor(?:ial|int)?|floor"
    "|integrate|limit|log|oo|pi|plot|series|simplify|solve|sqrt"
)
_DAY = 86400
_FAR = Fraction(10**9 + 7)  # a number that nobody types


class NoReadingError(Exception):
    """A text does not follow the grammar, or says nothing sensible; its argument may say why."""


def check(condition: object, refusal: str = "") -> None:
    """Raise NoReadingError unless a condition holds."""
    if not condition:
        raise NoReadingError(refusal)


def exact(node: ast.expr, x: Fraction | None = None) -> Fraction | None:
    """The value of a polynomial, at x, as it is worked out on paper; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as number) if abs(number) < 1e100:
            return Fraction(str(number))
        case ast.Name():
            return x
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return exact(ast.BinOp(ast.Constant(-1), ast.Mult(), operand), x)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            return exact(ast.BinOp(left, ast.Mult(), left), x)
        case ast.BinOp(left=left, op=sign, right=right) if work := _OPERATIONS.get(type(sign)):
            divides = isinstance(sign, ast.Div)
            one, other = exact(left, x), exact(right, None if divides else x)
            if one is not None and other is not None and (other or not divides):
                return work(one, other)
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
    def value(self) -> Fraction | None:
        """Its exact value, where it consists of numbers and the four operations."""
        return exact(ast.parse(self.text, mode="eval").body)

    def signed(self, sign: str) -> "Term":
        """The term with a sign before it."""
        return self._replace(text=sign + self.at(SIGN), level=SIGN, ends="")

    def added(self, sign: str, right: "Term") -> "Term":
        """A sum or difference; a percent is of what stands before it."""
        kind, unit, kinds = self.kind, self.unit, {self.kind, right.kind}
        if right.kind == "%" and kind not in ("%", "date", "temperature"):
            return Term(f"{self.at(PRODUCT)}*(1{sign}{right.text})", PRODUCT, kind, unit)
        if "date" in kinds:
            return _dated(sign, self, right)
        if kinds <= {"", "%"}:
            kind = right.kind
        elif kinds == {"", "money"}:
            kind, unit = "money", unit or right.unit
        else:
            check(kind == right.kind and kind != "temperature")
            right = right.rescaled(unit)
        other = right.at(POWER if right.level == SIGN else PRODUCT)
        return Term(f"{self.at(SUM)}{sign}{other}", SUM, kind, unit)

    def multiplied(self, sign: str, right: "Term") -> "Term":
        """A product, quotient or remainder."""
        kind, unit = "", None
        check(not {self.kind, right.kind} & {"date", "temperature"})
        if sign == "/" and self.kind == right.kind:
            right = right.rescaled(self.unit)
        elif right.kind in NUMBERS:
            kind, unit = self.kind.replace("%", ""), self.unit
        elif sign == "/" and self.unit and right.unit:
            return _quotient(self, self.unit, right, right.unit)
        else:
            check(self.kind in NUMBERS and sign == "*")
            kind, unit = right.kind, right.unit
        text = f"{self.at(PRODUCT)}{' % ' if sign == '%' else sign}{right.at(SIGN)}"
        return Term(text, PRODUCT, kind, unit, right.ends.strip("%") if sign == "*" else "")

    def raised(self, exponent: "Term") -> "Term":
        """A power."""
        check(self.kind in NUMBERS and not exponent.kind)
        text = f"{self.at(ATOM)}**{exponent.at(SIGN)}"
        return Term(text, POWER, ends=self.ends and "!")

    def rescaled(self, unit: Unit | None) -> "Term":
        """The same amount in another unit of its kind, by one exact factor if there is one."""
        if unit is None or self.kind == "time":
            return self
        check(self.kind != "money" or self.unit == unit, "exchange")
        ratio = (self.unit.size if self.unit else Fraction(1)) / unit.size
        if ratio == 1:
            return self._replace(unit=unit)
        text = f"{self.at(PRODUCT)}*{ratio.numerator}/{ratio.denominator}"
        factors = sorted([("*", ratio), ("/", 1 / ratio)], key=lambda each: each[1].denominator)
        for sign, factor in reversed(factors):
            if (factor * 10**12).denominator == 1 and factor >= Fraction(1, 1000):
                text = f"{self.at(PRODUCT)}{sign}{f'{float(factor):.12f}'.rstrip('0').rstrip('.')}"
        return Term(text, PRODUCT, unit.kind, unit)

    def converted(self, target: Token) -> "Term":
        """The term in the unit, or as the percent, fraction or digits, that a token names."""
        roles, kind, is_number = target.roles, self.kind, self.kind in NUMBERS
        if "%" in roles and is_number:
            return Term(f"{self.at(PRODUCT)}*100", PRODUCT, "percent")
        if "fraction" in roles and is_number:
            return _as_fraction(self.text)
        if "base" in roles and not kind:
            check(roles["base"] != 10 or self.text.startswith("int("))
            return Term(_BASES.get(roles["base"], "A").replace("A", self.text))
        if "rad" in roles and kind == "deg":
            return Term(f"math.radians({self.text})")
        if "deg" in roles and (kind == "rad" or ("math." in self.text and kind in ("", "deg"))):
            is_done = self.text.startswith("math.degrees")
            return self if is_done else Term(f"math.degrees({self.text})", kind="deg")
        for unit in roles.get("unit", ()):
            if (kind, unit.kind) == ("calendar", "time") and self.unit and self.unit.size == 12:
                year = Term(f"dt.timedelta(days={self.at(PRODUCT)}*365)", kind="time")
                return year.converted(target)
            if kind == unit.kind:
                return _in_unit(self, unit)
        raise NoReadingError


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


def called(template: str, slots: dict[str, Term], kinds: tuple[str, ...] = NUMBERS) -> Term:
    """The Python for a function or a form, such as `math.log(A, B)`, with its operands put in."""
    check(all(term.kind in kinds for name, term in slots.items() if name in template))
    if template == "math.sqrt(A)" and (value := slots["A"].value) and value < 0:
        return Term(f"math.sqrt({decimal(-value)})*1j", PRODUCT)

    def put(match: re.Match[str]) -> str:
        is_enclosed = match["open"] is not None and match["close"] is not None
        return slots[match["name"]].at(SUM if is_enclosed else ATOM)

    slot = r"(?P<open>(?<=[(\[])|(?<=, ))?\b(?P<name>[ABDEX])\b(?P<close>(?=[)\],]))?"
    is_call = re.fullmatch(r"[\w.]+\(.*\)", template)
    level = ATOM if is_call else POWER if "**" in template else PRODUCT
    kind = "deg" if template.startswith("math.degrees") else ""
    return Term(re.sub(slot, put, template), level, kind, ends=")")


def solved(left: Term, right: Term) -> Term:
    """The roots of a linear or quadratic equation."""
    tree = ast.parse(f"{left.text} - ({right.text})", mode="eval").body
    points = (Fraction(0), Fraction(1), Fraction(-1), _FAR)
    values = [value for x in points if (value := exact(tree, x)) is not None]
    check(len(values) == len(points) and not (left.text.isidentifier() and right.value is not None))
    c, one, other, far = values
    a, b = (one + other) / 2 - c, (one - other) / 2
    check((a or b) and far == (a * _FAR + b) * _FAR + c)
    if any(Fraction(decimal(each)) != each for each in (a, b, c)):  # thirds
        whole = math.lcm(a.denominator, b.denominator, c.denominator)
        a, b, c = a * whole, b * whole, c * whole
    if not a:
        top, bottom = (-c, b) if b > 0 else (c, -b)
        return Term(f"{decimal(top)}/{decimal(bottom)}".removesuffix("/1"), PRODUCT)
    square = b * b - 4 * a * c
    exact_root = Fraction(math.isqrt(abs(square.numerator)), math.isqrt(square.denominator))
    is_exact = exact_root**2 == abs(square)
    root = decimal(exact_root) if is_exact else f"{decimal(abs(square))}**0.5"
    root += "*1j" * (square < 0)
    middle = decimal(-b) if b or square < 0 else ""
    tops = (f"({middle}{sign}{root})" if middle else f"{sign}{root}" for sign in "+-")
    first, second = (f"{top.lstrip('+')}/{decimal(2 * a)}" for top in tops)
    return Term(f"({first}, {second})")


def symbolic(term: Term, unknown: str) -> Term:
    """A term in an unknown, with sympy's names for math's, and exact fractions."""
    text = re.sub(r"\bmath\.(\w+)", lambda name: _SYMPY.get(name[1], name[1]), term.text)
    names = set(re.findall(r"(?<![\w.])[^\W\d]\w*", text)) - {unknown}
    check(term.kind in NUMBERS and all(map(_SYMPY_NAME.fullmatch, names)))
    return term._replace(text=re.sub(r"(?<![\w.*/])(\d+)/(?=\d+(?![\w.]))", r"S(\1)/", text))


def _dated(sign: str, left: Term, right: Term) -> Term:
    """The days between two dates, or a date some time after or before another."""
    if left.kind == right.kind and sign == "-":
        return Term(f"({left.text}-{right.text}).days")
    size = right.unit.size if right.unit else Fraction(0)
    if right.kind == "time" and size >= _DAY:
        return Term(f"{left.text}{sign}{right.text}", SUM, "date")
    today = f"{datetime.now(UTC):dt.date(%Y, %m, %d)}"
    text = today if left == TODAY else left.text
    match = re.fullmatch(r"dt\.date\((\d+), (\d+), (\d+)\)", text)
    if not match or right.kind != "calendar" or (count := right.value) is None:
        raise NoReadingError
    check(count.denominator == 1)
    year, month, day = map(int, match.groups())
    months = int(count * size) * (1 if sign == "+" else -1)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return date(year, month + 1, min(day, calendar.monthrange(year, month + 1)[1]))


def _quotient(left: Term, unit: Unit, right: Term, other: Unit) -> Term:
    """A quotient of unlike amounts: a speed, a price."""
    check("/" not in left.kind + right.kind)
    single = re.sub(r"(?<=\w\w)s$", "", other.symbol)  # km/day
    named = Unit(f"{unit.kind}/{other.kind}", unit.size / other.size, f"{unit.symbol}/{single}")
    over, under = _in_unit(left, unit), _in_unit(right, other)
    return Term(f"{over.at(PRODUCT)}/{under.at(SIGN)}", PRODUCT, named.kind, named)


def _in_unit(term: Term, unit: Unit) -> Term:
    """A term in another unit of its kind."""
    if term.kind == "temperature" and term.unit:
        check(term.unit != unit)
        form = _TEMPERATURES[term.unit.symbol + unit.symbol]
        return Term(form.replace("A", term.at(PRODUCT)), SUM, unit=unit)
    if term.kind == "time":
        one = quantity(Term("1"), unit).text
        number = re.fullmatch(rf"{re.escape(one[:-2])}([\d._]+)\)", term.text)
        text = number[1] if number else f"{term.at(PRODUCT)}/{one}"
        return Term(text, ATOM if number else PRODUCT, "amount", unit)
    return term.rescaled(unit)


def _as_fraction(text: str) -> Term:
    check("math." not in text)
    text = re.sub(r"(?<![\w.])\d*\.\d+(?:e-?\d+)?", r"Fraction('\g<0>')", text)
    return Term(re.sub(r"(?<![\w.'/*])(\d+)/(\d+)(?![\w.'])", r"Fraction(\1, \2)", text))
