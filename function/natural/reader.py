"""Reads what people type to a calculator: `15% of 80`, `корень из 16`, `5 ft 10 in in cm`.

    text    = {"start"} (group ["=" group | "to" target | "where" name "=" group]) {"end"}
    group   = form | sum                             form: `subtract A from B`, `A more than B`
    sum     = product {("+" | "-") product}          a percent is of what stands before it
    product = signed {("*" | "/" | "of" | "") signed}
    signed  = ["neg"] postfix ["^" signed]
    postfix = atom {"!" | "%" | "deg" | unit | power}
    atom    = number | constant | date | clock | call operand | list items | "(" group ")"

The terminals are in words/*.txt. Every token is accounted for, or there is no reading. Where two
readings are sensible (`1,234`, `sin 5`, `6/2(1+2)`) both are given: the parser asks `_choose` which
to follow, and runs once for each answer.
"""

import ast
import calendar
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from function.natural.lexicon import Form, Token, Unit, forms, tokens
from function.natural.typography import plain
from function.program import Program

LONGEST = 200  # characters; a longer text is a program
MOST_RUNS = 16  # of the parser over one text
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)  # how tightly Python binds an expression

_IMPORTS = {"Fraction(": "from fractions import Fraction\n", "statistics.": "import statistics\n"}
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
_TIGHT_DASH = re.compile(r"(?<=[\w.)])—(?=[\w.(])")
_CLOCK = re.compile(r"(\d+)(?::(\d\d))?(?::(\d\d))?\s?(?:([ap])\.?m)?")
_OPERAND = ("number", "num", "vulgar", "python", "call", "list", "const", "(", "|", "scale")
_TARGET = ("unit", "%", "fraction", "deg", "rad", "base")
_VARIABLES = "xyzabnху"
_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "+-01234567890123456789")
_END = Token("", {})


@dataclass(frozen=True)
class Expression:
    """One way to read a text: the program, the part of it that is shown, and the value's unit.

    `notes` names what in the text Python would read otherwise: power, comma, group, percent, date.
    """

    program: str
    text: str
    unit: str = ""
    notes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reading:
    """All sensible ways to read a text; `refusal` says why there is none, where that is known."""

    expressions: tuple[Expression, ...] = ()
    refusal: str = ""


class _NoReadingError(Exception):
    """The text does not follow the grammar, or says nothing sensible."""


def read(text: str) -> Reading:
    """Return the ways to read a short text in one line. Never raises; runs nothing."""
    if len(text) > LONGEST or "\n" in text.strip():
        return Reading()
    # Phones and Telegram Desktop make a dash of two minus signs, as in `5--1`.
    spellings = dict.fromkeys((text, _TIGHT_DASH.sub("--", text)))
    found: dict[str, Expression] = {}
    refusal = ""
    runs: list[tuple[str, tuple[int, ...]]] = [
        (plain(spelling).strip().lower(), ()) for spelling in spellings
    ]
    for _ in range(MOST_RUNS):
        if not runs:
            return Reading(tuple(found.values()), "" if found else refusal)
        line, path = runs.pop(0)
        parser = _Parser(line, path)
        try:
            expression = parser.text()
            found.setdefault(expression.program, expression)
        except (_NoReadingError, ZeroDivisionError, OverflowError, RecursionError):
            refusal = refusal or parser.refusal
        runs += [(line, other) for other in parser.other_paths()]
    return Reading()


def shown(program: Program, output: str) -> str:
    """The value of a calculation: `0.5`, not `0.49999999999999994`, with its unit."""
    text = output.strip()
    if re.fullmatch(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?", text) and not text.lstrip("-").isdigit():
        value = float(f"{float(text):.14g}")
        if abs(value) < 1e-15 and re.search(r"math\.(?:sin|cos|tan)\(", program.source):
            value = 0.0
        text = str(int(value)) if abs(value) < 1e15 and value % 1 == 0 else repr(value)
    return f"{text} {program.unit}".rstrip()


def polynomial(node: ast.expr) -> tuple[Fraction, Fraction, Fraction] | None:
    """The exact coefficients of 1, x and x**2 in an expression; None for anything else."""
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


@dataclass(frozen=True, slots=True)
class _Term:
    """A subtree, written in Python: how tightly it binds, and what it measures ("%" for percent).

    `ends` tells how it was typed at its end, which decides what may stand beside it.
    """

    text: str
    level: int = ATOM
    kind: str = ""
    unit: Unit | None = None
    ends: str = ""

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"

    @property
    def poly(self) -> tuple[Fraction, Fraction, Fraction] | None:
        return polynomial(ast.parse(self.text, mode="eval").body)

    @property
    def value(self) -> Fraction | None:
        poly = self.poly
        return poly[0] if poly and not any(poly[1:]) else None


_TODAY = _Term("dt.date.today()", kind="date")


class _Parser:
    """Follows the grammar once, along a path of choices; what was chosen beyond it is told."""

    def __init__(self, line: str, path: tuple[int, ...]) -> None:
        self.line, self.path, self.place = line, path, 0
        self.chosen: dict[str, tuple[int, int]] = {}  # which option, of how many
        self.notes: set[str] = set()
        self.variables: dict[str, _Term] = {}
        self.refusal = self.unknown = ""
        self.in_list = self.is_alone = False
        spaces = not re.search(r"\d \d{3}(?!\d)", line) or self._choose("spaces", "one", "two")
        comma = re.search(r"\d,\d|\d\.\d+\.\d", line)
        self.comma = self._choose("comma", ",", ".", "list") if comma else "."
        self.tokens = tokens(line, commas=self.comma != "list", spaces=spaces != "two") or []

    def _choose(self, name: str, *options: str) -> str:
        """One of several readings, the same for the whole text."""
        if name not in self.chosen:
            place = len(self.chosen)
            taken = self.path[place] if place < len(self.path) else 0
            self.chosen[name] = (taken, len(options))
        return options[self.chosen[name][0]]

    def other_paths(self) -> list[tuple[int, ...]]:
        """The paths that leave this one where it was not given."""
        taken = tuple(option for option, _ in self.chosen.values())
        counts = [count for _, count in self.chosen.values()]
        beyond = range(len(self.path), len(counts))
        return [(*taken[:place], other) for place in beyond for other in range(1, counts[place])]

    # Tokens

    def _peek(self, ahead: int = 0) -> Token:
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else _END

    def _next(self) -> Token:
        self.place += 1
        return self._peek(-1)

    def _is(self, *roles: str, ahead: int = 0) -> bool:
        return not self._peek(ahead).roles.keys().isdisjoint(roles)

    def _accept(self, *roles: str) -> str:
        """Step over a token that has one of the roles, and return that role, else ""."""
        found = next((role for role in roles if role in self._peek().roles), "")
        self.place += bool(found)
        return found

    def _check(self, condition: object, refusal: str = "") -> None:
        if not condition:
            self.refusal = self.refusal or refusal
            raise _NoReadingError

    def _attempt(self, parse: Callable[[], _Term]) -> _Term | None:
        start = self.place
        try:
            return parse()
        except _NoReadingError:
            self.place = start
            return None

    # The text as a whole

    def text(self) -> Expression:
        self.refusal = next((role for role in ("algebra", "draw") if self._is(role)), "")
        while self._accept("start", ":", "="):
            pass
        while self.tokens[self.place :] and not {"end", "=", ":"}.isdisjoint(self.tokens[-1].roles):
            self.tokens.pop()
        self.is_alone = len(self.tokens) == self.place + 1
        is_digits = self.is_alone and re.fullmatch(r"[1-9]\d*\.?\d*", self._peek().text)
        is_word = self.is_alone and not self._is("number", "clock", "date", "const", "today")
        term = self._in_base() or self._where() or self._equation()
        self._check(self.place == len(self.tokens) and not self.unknown)
        is_bare = re.fullmatch(r"[\d._]+|dt\.timedelta\(\w+=[\d._]+\)", term.text)
        nothing_done = is_digits or is_word or term.unit or re.search(r"[()[]", self.line)
        self._check(not (is_bare and (nothing_done or term.kind == "time")))
        self._check(term.text != "math.e")
        unit = term.unit.symbol if term.unit and term.kind != "time" else ""
        unit = {"deg": "°", "percent": "%"}.get(term.kind, unit)
        imports = "".join(line for name, line in _IMPORTS.items() if name in term.text)
        return Expression(imports + term.text, term.text, unit, frozenset(self.notes))

    def _in_base(self) -> _Term | None:
        """`ff hex`, `hex ff to dec`, `1010 binary to decimal`."""
        rest = self.tokens[self.place :]
        end = next((place for place, token in enumerate(rest) if "to" in token.roles), len(rest))
        named = next((token for token in rest[:end] if "base" in token.roles), None)
        if named is None:
            return None
        base, digits = named.roles["base"], "".join(t.text for t in rest[:end] if t is not named)
        self._check(re.fullmatch("[0-9a-f]+", digits) and all(int(d, 16) < base for d in digits))
        self.place += end
        text = f'int("{digits}", {base})'
        if self._accept("to"):
            self._check(self._is("base"))
            text = _BASES[self._next().roles["base"]].format(text)
        return _Term(text)

    def _where(self) -> _Term | None:
        """`3x + 2 where x = 4`."""
        start, whole = self.place, self.tokens
        for place in range(start, len(whole) - 3):
            if "where" in whole[place].roles and whole[place + 2].text == "=":
                self.place = place + 3
                self.variables[whole[place + 1].text] = self._group()
                self._check(self.place == len(whole) and whole[place + 1].text in _VARIABLES)
                self.tokens, self.place = whole[:place], start
                return self._group()
        return None

    def _equation(self) -> _Term:
        left = self._group()
        if sign := self._accept("==", "=", ">", "<", ">=", "<=", "!="):
            right = self._group()
            if self.unknown and sign in ("==", "="):
                self.unknown = ""
                return self._solved(left, right)
            self._check(left.kind == right.kind)
            return _Term(f"{left.text} {'==' if sign == '=' else sign} {right.text}")
        return self._converted(left, self._next()) if self._accept("to") else left

    def _solved(self, left: _Term, right: _Term) -> _Term:
        """The roots of a linear or quadratic equation."""
        poly = _Term(f"{left.text} - ({right.text})").poly
        is_given = left.text == "x" and right.value is not None  # x = 5
        self._check(poly and not is_given)
        c, b, a = poly or (Fraction(0),) * 3
        if not a:
            self._check(b)
            top, bottom = (-c, b) if b > 0 else (c, -b)
            return _Term(f"{_decimal(top)}/{_decimal(bottom)}".removesuffix("/1"), PRODUCT)
        root, under = f"{_wrap(b * b - 4 * a * c)}**0.5", _wrap(2 * a)
        first, second = (
            f"{_decimal(-b)}{sign}{root}" if b else sign.strip("+") + root for sign in "+-"
        )
        return _Term(f"(({first})/{under}, ({second})/{under})")

    # Groups

    def _group(self) -> _Term:
        self._article()
        for form in forms(self._peek().text):
            if form[1][0] != "A" and (term := self._attempt(partial(self._form, form))):
                return term
        left = self._sum()
        for form in forms(self._peek().text):
            if form[1][0] == "A" and (term := self._attempt(partial(self._form, form, left))):
                return term
        return left

    def _form(self, form: Form, left: _Term | None = None) -> _Term:
        """`divide A by B`: the whole of a group."""
        meaning, parts = form
        slots, unit = {"A": left or _TODAY, "B": _TODAY, "today": _TODAY}, _END
        for part in parts[left is not None :]:
            if part in ("A", "B"):
                slots[part] = self._slot()
            else:
                token = self._next()
                self._check(token.text == part or part == "U")
                unit = token if part == "U" else unit
        self._check(self._peek() is _END or self._is(")", "to", "="))
        if meaning == "A in U":
            return self._converted(slots["A"], unit)
        steps = meaning.removesuffix(" %").split()
        if re.search(r"[(*][*(]|,|\(", meaning):
            return self._called(meaning, slots)
        term = slots[steps[0]]
        for sign, operand in zip(steps[1::2], steps[2::2], strict=True):
            self._check(sign != "of" or term.kind == "%")
            other = slots.get(operand) or _Term(operand)
            work = self._add if sign in "+-" else self._raised if sign == "**" else self._multiplied
            term = work(sign.replace("of", "*"), term, other)
        return replace(term, kind="percent") if meaning.endswith("%") and len(steps) > 3 else term

    def _slot(self) -> _Term:
        left = self._signed()
        while self._continues(left):
            left = self._multiplied("*", left, self._signed())
        return left

    def _sum(self, first: _Term | None = None) -> _Term:
        left = self._product(first)
        while sign := self._accept("+", "-"):
            is_span = sign == "-" and self._peek(-1).glued and self._is("clock")
            right = self._product()
            if is_span and _is_earlier(left, right):
                left, right = right, left  # 9:00-17:30
            left = self._add(sign, left, right)
        return left

    def _product(self, first: _Term | None = None) -> _Term:
        left = last = first or self._signed()
        while True:
            if self._continues(last):
                last = self._signed()
                left = self._multiplied("*", left, last)
            elif self._is("of") and (left.kind == "%" or left.ends == "part"):
                self.place += 1
                last = self._extended(self._signed(), "+", "-")
                left = self._multiplied("*", left, last)
                left = replace(left, ends="part") if last.kind == "%" else left
            elif left.ends == "%" and self._is("number"):
                last = self._signed()  # 18% 2500
                left = self._multiplied("*", left, last)
            elif sign := self._operator():
                is_part = sign == "/" and left.ends == "number"
                last = self._signed()
                if (
                    sign == "/"
                    and self._continues(last)
                    and self._choose("of /", "one", "all") == "all"
                ):
                    while self._continues(last):
                        last = self._multiplied("*", last, self._signed())
                is_part = is_part and last.ends == "number"
                left = self._multiplied(sign, left, last)
                left = replace(left, ends="part") if is_part else left
            else:
                return left

    def _extended(self, first: _Term, *signs: str) -> _Term:
        """An operand, or the sum that begins with it: `sqrt of 9 plus 16`."""
        more = self._is(*signs) and self._choose("of of", "one", "all") == "all"
        return self._sum(first) if more else first

    def _operator(self) -> str:
        if self._peek().text in "xх":
            is_times = self._is(*_OPERAND, ahead=1)
            return self._accept("*") if is_times else ""
        if self._is("by") and self._is(*_OPERAND, ahead=1):
            self.place += 1
            return self._choose("by", "*", "/")  # 6 на 7
        sign = self._accept("*", "//", "/", "mod") or (self._accept("%") and "mod")
        return "%" if sign == "mod" else sign

    def _continues(self, last: _Term) -> bool:
        """Whether the next token is multiplied by standing beside the last one."""
        token = self._peek()
        if self._is("("):
            return last.ends in ("number", ")", "name", "!", "part")
        if not last.ends or last.ends == "%" or self._is("num"):
            return False
        if self._is("number"):
            return last.text.endswith("math.pi") and not token.glued  # 2 pi 3
        if token.text and token.text in _VARIABLES:
            is_times = token.text in "xх" and self._is(*_OPERAND, ahead=1)
            return not is_times and (token.text in self.variables or "=" in self.line)
        is_factor = self._is("call", "const", "python") and not self._is_infix()
        return last.ends != "name" and is_factor

    def _is_infix(self) -> bool:
        """Whether a form goes on with the next token, as in `5 choose 2`."""
        return any(parts[0] == "A" for _, parts in forms(self._peek().text))

    def _signed(self) -> _Term:
        if self._is("neg", "+"):
            sign = "-" if self._accept("neg") else self._accept("+")
            term = self._signed()
            return replace(term, text=sign + term.at(SIGN), level=SIGN, ends="")
        base = self._postfix(self._atom())
        if not self._accept("^", "**"):
            return base
        self.notes.add("power")
        is_set = self._accept("{")
        exponent = self._sum() if is_set else self._signed()
        self._check(not is_set or self._accept("}"))
        return self._raised("**", base, exponent)

    def _postfix(self, term: _Term) -> _Term:
        while True:
            token, start = self._peek(), self.place
            if self._is("power"):
                exponent = self._next().text.translate(_SUPERSCRIPTS).lstrip("+")
                term = self._raised("**", term, _Term(exponent, SIGN))
            elif role := self._accept("^2", "^3"):
                term = self._raised("**", term, _Term(role[1]))
            elif not term.kind and self._accept("!"):
                twice = self._is("!") and self._choose("!!", "double", "twice") == "double"
                form = "math.prod(range(A, 0, -2))" if twice else "math.factorial(A)"
                self.place += twice
                term = replace(self._called(form, {"A": term}), ends="!")
            elif not term.kind and self._is("%") and self._is_percent(term, token):
                self.place += 1
                self.notes.add("percent")
                term = _Term(f"{term.at(PRODUCT)}/100", PRODUCT, "%", ends="%")
            elif not term.kind and (role := self._accept("deg", "rad")):
                term = replace(term, kind=role, ends="")
            elif token.text == "i" and token.glued and term.ends == "number":
                self.place += 1
                term = _Term(f"{term.text}j", ends="name")
            elif (
                not term.kind
                and self._is("unit")
                and not (self._is("number", ahead=1) and self._is_infix())
            ):
                term = self._quantity(term)
            if self.place == start:
                return term

    def _is_percent(self, term: _Term, token: Token) -> bool:
        """Whether a % sign means a hundredth here, not a remainder."""
        after = self._peek(1)
        if token.text != "%" or after is _END or self._is("of", "to", ahead=1):
            return True
        if not self._is(*_OPERAND, ahead=1) or self._is("*", ahead=1):
            return token.glued or not self._is("+", "-", ahead=1)
        if term.ends != "number" or not self._is("number", ahead=1) or self._is("%", ahead=2):
            return False
        is_less = after.text.isdigit() and (term.value or 0) < int(after.text)
        return is_less or (token.glued and not after.glued)

    def _quantity(self, term: _Term) -> _Term:
        """A number with its unit, and what follows in a smaller one: `5 ft 10 in`, `1h 20 min`."""
        token = self._peek()
        if "to" in token.roles and not self._is("to", ahead=1) and self._is(*_TARGET, ahead=1):
            return term  # `0.6 in fraction`: not inches
        self.place += 1
        kinds = [each.kind for each in token.roles["unit"]]
        kind = self._choose(f"unit {token.text}", *kinds) if len(kinds) > 1 else kinds[0]
        unit: Unit = token.roles["unit"][kinds.index(kind)]
        found = self._measured(term, unit)

        def smaller() -> _Term:
            self._accept("and")
            self._check(self._is("number", "num") and kind not in ("money", "temperature"))
            more = self._postfix(self._number())
            self._check(more.kind == kind and more.unit and more.unit.size < unit.size)
            return self._add("+", found, more)

        return self._attempt(smaller) or found

    def _measured(self, number: _Term, unit: Unit) -> _Term:
        is_thousands = self.comma == "," and re.search(r"\.\d{3}", number.text)
        self._check(unit.kind != "money" or not is_thousands)  # $1,000
        if unit.kind != "time":
            return replace(number, kind=unit.kind, unit=unit, ends="")
        name = _TIMES.get(int(unit.size), "milliseconds")
        return _Term(f"dt.timedelta({name}={number.text})", kind="time", unit=unit)

    # Atoms

    def _article(self) -> None:
        """Step over `the` before what bears it."""
        if self._is("the") and self._is("call", "list", "part", "form", "ord", "today", ahead=1):
            self.place += 1

    def _atom(self) -> _Term:
        self._article()
        if self._is("number", "num", "vulgar", "scale", "part", "ord"):
            return self._number()
        if self._is("list") and (term := self._attempt(self._list)):
            return term
        if self._is("call"):
            return self._call()
        token = self._next()
        roles = token.roles
        if "(" in roles or "[" in roles:
            inner = self._group()
            self._check(self._accept(")" if "(" in roles else "]") or self._peek() is _END)
            return replace(inner, kind=inner.kind.replace("%", ""), ends=")")
        if "|" in roles:
            inner = self._sum()
            self._check(self._accept("|"))
            return _Term(f"abs({inner.text})", ends=")")
        return self._name(token)

    def _name(self, token: Token) -> _Term:
        roles = token.roles
        if "const" in roles:
            return _Term(roles["const"], ends="name")
        if "python" in roles:
            operands = ", ".join(item.text for item in self._items()) if self._accept("(") else None
            return _Term(token.text + f"({operands})" * (operands is not None), ends="name")
        if "date" in roles:
            return self._date(token.text)
        if "clock" in roles:
            return self._clock(token.text)
        if "today" in roles:
            return _TODAY
        if "unit" in roles and roles["unit"][0].kind == "money":
            return self._measured(self._number(), roles["unit"][0])
        if "i" in roles and re.search(r"\di\b|\bi\s*\^", self.line):
            return _Term("1j", ends="name")
        if token.text in self.variables:
            return _Term(self.variables[token.text].at(ATOM), ends="name")
        self._check(token.text and token.text in _VARIABLES and self.unknown in ("", token.text))
        self.unknown = token.text
        return _Term("x", ends="name")

    def _number(self) -> _Term:
        """`2.5`, `3 1/2`, `2½`, `10k`, `twenty five`, `3 million 200 thousand`, `two thirds`."""
        total, group, floor = Fraction(0), None, Fraction(10**30)
        start, text, is_spoken = self.place, "", False
        while True:
            token, roles = self._peek(), self._peek().roles
            word = roles.get("num", None if self._is("of", ahead=1) else roles.get("ord"))
            if "number" in roles and group is None:
                group, text = self._digits(token.text)
                self._check(group < floor)
            elif "vulgar" in roles and not is_spoken:
                self.place += 1
                value = Fraction(unicodedata.numeric(token.text)).limit_denominator(10)
                return _fraction(total + (group or 0) + value)
            elif word is not None and _follows(group, word, is_spoken):
                group, is_spoken = (group or 0) + Fraction(word), True
            elif (
                "scale" in roles and (group is not None or len(token.text) > 2) and self._is_scale()
            ):
                if roles["scale"] == 100:
                    group, is_spoken = (group or 1) * Fraction(100), True
                else:
                    self._check(roles["scale"] < floor)
                    floor = Fraction(roles["scale"])
                    total, group = total + (1 if group is None else group) * floor, None
            elif not (is_spoken and group and self._joins(group)):
                break
            self.place += 1
        value = total + (group or 0)
        if self._is("part") and (self.place == start or self._is("of", ahead=1)):
            part = self._next().roles["part"]
            return _fraction((value if self.place > start + 1 else 1) / Fraction(part))
        self._check(self.place > start)
        if self.place > start + 1 or not text:
            return _Term(_decimal(value), ends="number")
        return self._attempt(partial(self._mixed, value)) or _Term(text, ends="number")

    def _joins(self, group: Fraction) -> bool:
        """Whether `and` or a hyphen goes on with a number in words."""
        word = self._peek(1).roles.get("num", 0)
        is_hyphen = self._peek().text == "-" and self._peek().glued and _follows(group, word, True)
        return is_hyphen or (
            self._is("and") and group >= 20 and 0 < word < 100 and not self.in_list
        )

    def _mixed(self, whole: Fraction) -> _Term:
        """`3 1/2`."""
        over, slash, under = self._next(), self._next(), self._next()
        self._check(slash.text == "/" and slash.glued and under.glued and not over.glued)
        self._check(over.text.isdigit() and under.text.isdigit())
        self._check(0 < int(over.text) < int(under.text))
        return _fraction(whole + Fraction(int(over.text), int(under.text)))

    def _is_scale(self) -> bool:
        """Whether `k` is a thousand here, not kelvin."""
        name = f"unit {self._peek().text}"
        is_either = self._is("unit") and self._is("to", ahead=1)
        return not is_either or self._choose(name, "scale", "temperature") == "scale"

    def _digits(self, text: str) -> tuple[Fraction, str]:
        """The value of a number, and how Python writes it."""
        is_decimal_comma = self.comma == ","
        bare = re.sub(r"[ ']", "," if "," in text and not is_decimal_comma else "", text)
        group, point = (r"\.", ",") if is_decimal_comma else (",", r"\.")
        whole = rf"\d{{1,3}}(?:{group}\d{{3}})+|\d{{1,2}}(?:{group}\d\d)+{group}\d{{3}}|\d*"
        match = re.fullmatch(rf"({whole})(?:{point}(\d+))?(e[-+]?\d+)?", bare)
        digits = re.sub(r"\D", "", match[1]) if match else ""
        self._check(match and (self.is_alone or not re.match(r"0\d", digits)))
        _, decimals, exponent = match.groups("") if match else ("", "", "")
        if "," in text:
            self.notes.add("comma" if is_decimal_comma and decimals else "group")
        is_grouped = not decimals and not exponent and not text.isdigit()
        digits = (f"{int(digits):_}" if is_grouped else digits.lstrip("0") or "0") if digits else ""
        python = f"{digits}.{decimals}{exponent}" if decimals else digits + exponent
        return Fraction(python.replace("_", "") if digits else f"0{python}"), python

    def _date(self, text: str) -> _Term:
        self.notes.add("date")
        numbers = [int(number) for number in re.split(r"[-/.]", text)]
        if numbers[0] < 1000:
            is_american = "/" in text and self._choose("date", "month", "day") == "month"
            first, second, year = numbers
            numbers = [year, first, second] if is_american else [year, second, first]
        year, month, day = numbers
        self._check(year >= 1000 and 1 <= month <= 12)
        self._check(1 <= day <= calendar.monthrange(year, month)[1])
        return _Term(f"dt.date({year}, {month}, {day})", kind="date")

    def _clock(self, text: str) -> _Term:
        match = _CLOCK.match(text)
        hours, minutes, seconds, half = match.groups("0") if match else ("0",) * 4
        if self.is_alone and half == "0" and self._choose("colon", "clock", "/") == "/":
            self._check(int(minutes) and seconds == "0")
            return _Term(f"{int(hours)}/{int(minutes)}", PRODUCT)
        self._check(half == "0" or 1 <= int(hours) <= 12)
        hour = int(hours) if half == "0" else int(hours) % 12 + 12 * (half == "p")
        parts = [("hours", hour), ("minutes", int(minutes)), ("seconds", int(seconds))]
        given = ", ".join(f"{name}={count}" for name, count in parts if count or name == "hours")
        return _Term(f"dt.timedelta({given})", kind="time")

    # Functions and lists

    def _call(self) -> _Term:
        token = self._next()
        power = None
        if "sin(" in token.roles["call"] or "cos(" in token.roles["call"] or "tan(" in token.text:
            if self._accept("^"):
                power = self._number()
            elif self._is("power"):
                power = _Term(self._next().text.translate(_SUPERSCRIPTS))
                self._check(power.text.isdigit())
        template = token.roles["call"]
        if "math.log(A, B)" in template and (base := self._base()):
            template = f"math.log{base}(A)" if base in ("2", "10") else f"math.log(A, {base})"
        is_spoken = self._accept("of") or token.text.endswith(" of")
        if self._accept("("):
            operands = self._items()
        else:
            operands = [self._operand()]
            if is_spoken:
                operands[0] = self._extended(operands[0], "+", "-", "*", "/")
            elif "rt(" in template and token.text not in "√∛" and self._peek().text not in "+-":
                operands[0] = self._extended(operands[0], "+", "-")  # корень 9 плюс 16
            self._check(not self._is("^") or token.text in "√∛")
        slots = dict(zip("AB", operands, strict=False))
        options = [each for each in template.split(" or ") if ("B" in each) == (len(operands) > 1)]
        self._check(options and len(operands) <= 2)
        term = self._called(self._choose(template, *options), slots)
        return self._raised("**", term, power) if power else term

    def _base(self) -> str:
        """The base of `log2 8` and `log₁₀ 1000`."""
        if self._accept("_"):
            return self._next().text
        is_glued = self._peek().glued and self._peek().text in ("2", "10")
        is_base = is_glued or self._is("subscript")
        return self._next().text.translate(_SUPERSCRIPTS) if is_base else ""

    def _operand(self) -> _Term:
        """The operand of a function without brackets."""
        if self._accept("neg"):
            inner = self._operand()
            return replace(inner, text="-" + inner.at(SIGN), level=SIGN)
        term = self._postfix(self._atom())
        while self._is("const") and self._continues(term):
            term = self._multiplied("*", term, self._atom())
        if "math.pi" in term.text and self._is("/") and self._is("number", ahead=1):
            self.place += 1
            term = self._multiplied("/", term, self._number())
        return term

    def _called(self, template: str, slots: dict[str, _Term]) -> _Term:
        first = slots["A"]
        is_angle = re.search(r"math\.(sin|cos|tan)\(", template)
        if is_angle:
            template = self._of_angle(template, first)
        kinds = ("", "%", "deg", "rad") if is_angle else ("", "%")
        self._check(
            all(slots[name].kind in kinds for name in "AB" if name in template and name in slots)
        )
        if template == "math.sqrt(A)" and (value := first.value) and value < 0:
            return _Term(f"math.sqrt({_decimal(-value)})*1j", PRODUCT)

        def put(match: re.Match[str]) -> str:
            is_enclosed = match["open"] is not None and match["close"] is not None
            return slots[match["name"]].at(SUM if is_enclosed else ATOM)

        slot = r"(?P<open>(?<=[(\[])|(?<=, ))?\b(?P<name>[AB])\b(?P<close>(?=[)\],]))?"
        text = re.sub(slot, put, template)
        is_call = re.fullmatch(r"[\w.]+\(.*\)", template)
        level = ATOM if is_call else POWER if "**" in template else PRODUCT
        return _Term(text, level, "deg" if template.startswith("math.degrees") else "", ends=")")

    def _of_angle(self, template: str, angle: _Term) -> str:
        """The function of an angle in degrees or radians, or both where either may be meant."""
        value = None if "math." in angle.text else angle.value
        of_degrees = template.replace("(A)", "(math.radians(A))")
        if angle.kind == "rad" or (not angle.kind and (value == 0 or "math." in angle.text)):
            return template
        sizes = [float(size) for size in re.findall(r"\d+(?:\.\d+)?", angle.text)]
        if not angle.kind and max(sizes, default=0) < 10:
            template = self._choose("angle", of_degrees, template)
        else:
            template = of_degrees
        pole = {"math.tan(": 90, "1/math.ta": 0}.get(template[:9])
        self._check(template != of_degrees or value is None or pole is None or value % 180 != pole)
        return template

    def _list(self) -> _Term:
        template = self._next().roles["list"]
        self._accept("of")
        outer, self.in_list = self.in_list, True
        try:
            is_enclosed = self._accept("(")
            items = self._items() if is_enclosed else self._bare_items()
        finally:
            self.in_list = outer
        self._check(len(items) > 1 and len({(item.kind, item.unit) for item in items}) == 1)
        self._check(items[0].kind in ("", "money"))
        joined = ", ".join(item.text for item in items)
        text = template.replace("N", str(len(items))).replace("A", joined)
        level = PRODUCT if template.endswith("N") else ATOM
        return _Term(text, level, items[0].kind, items[0].unit, ")" if is_enclosed else "")

    def _items(self) -> list[_Term]:
        """Operands in brackets, to the closing one or the end of the text."""
        items, first = [self._sum()], ""
        while self._peek() is not _END and not self._accept(")"):
            separator = self._accept(";", ",", "and") or (" " if self._is("number") else "")
            self._check(separator and separator in (first or separator, "and"))
            first = first or separator
            items.append(self._sum())
        return items

    def _bare_items(self) -> list[_Term]:
        """Operands without brackets, separated by signs, words or spaces."""
        items, separators = [self._signed()], set[str]()
        while True:
            separator = self._accept(";", ",")
            separator = (self._accept("and") and (separator or "and")) or separator
            if not separator and not self._is("number", "num", "vulgar", "neg"):
                break
            separators.add(separator)
            items.append(self._signed())
        self._check(not {";", ","} <= separators)
        self._check("" not in separators or not separators & {";", ","})
        numbers = re.findall(r"\d[\d,]*", self.line)
        is_decimal = all(re.fullmatch(r"\d+,\d+", number) for number in numbers)
        self._check(not (self.comma == "list" and "and" in separators and is_decimal))
        return items

    # Arithmetic

    def _add(self, sign: str, left: _Term, right: _Term) -> _Term:
        kind, unit, kinds = left.kind, left.unit, {left.kind, right.kind}
        if right.kind == "%" and kind in ("", "money"):
            return _Term(f"{left.at(PRODUCT)}*(1{sign}{right.text})", PRODUCT, kind, unit)
        if "date" in kinds:
            return self._dated(sign, left, right)
        if kinds <= {"", "%"}:
            kind = ""
        elif kinds == {"", "money"}:
            kind, unit = "money", unit or right.unit
        elif kind == "time" and not unit and right.ends == "number" and not right.kind:
            name = self._choose("of time", "minutes", "hours")  # 10:30 + 15
            right = _Term(f"dt.timedelta({name}={right.text})")
        else:
            self._check(kind == right.kind and kind != "temperature")
            self._check(kind != "money" or unit == right.unit, "exchange")
            right = _rescaled(right, unit) if unit and kind != "time" else right
        other = right.at(POWER if right.level == SIGN else PRODUCT)
        return _Term(f"{left.at(SUM)}{sign}{other}", SUM, kind, unit)

    def _dated(self, sign: str, left: _Term, right: _Term) -> _Term:
        if left.kind == right.kind and sign == "-":
            return _Term(f"({left.text}-{right.text}).days")
        self._check(left.kind == "date" and right.unit)
        if right.kind == "time" and right.unit and right.unit.size >= 86400:
            return _Term(f"{left.text}{sign}{right.text}", SUM, "date")
        match, count = re.fullmatch(r"dt\.date\((\d+), (\d+), (\d+)\)", left.text), right.value
        self._check(match and right.kind == "calendar" and count and count.denominator == 1)
        year, month, day = map(int, match.groups()) if match else (1, 1, 1)
        months = int((count or 0) * (right.unit.size if right.unit else 1))
        place = year * 12 + month - 1 + (months if sign == "+" else -months)
        year, month = place // 12, place % 12 + 1
        self._check(1 <= year <= 9999)
        day = min(day, calendar.monthrange(year, month)[1])
        return _Term(f"dt.date({year}, {month}, {day})", kind="date")

    def _multiplied(self, sign: str, left: _Term, right: _Term) -> _Term:
        kind, unit = "", None
        self._check(not {left.kind, right.kind} & {"date", "temperature"})
        if sign == "/" and left.kind == right.kind and left.kind not in ("", "%"):
            self._check(left.kind != "money" or left.unit == right.unit, "exchange")
            if left.unit and left.kind != "time":
                right = _rescaled(right, left.unit)
        elif right.kind in ("", "%"):
            kind, unit = left.kind.replace("%", ""), left.unit
        else:
            self._check(left.kind in ("", "%") and sign == "*")
            kind, unit = right.kind, right.unit
        spaced = " % " if sign == "%" else sign
        text = f"{left.at(PRODUCT)}{spaced}{right.at(SIGN)}"
        return _Term(
            text, PRODUCT, kind, unit, right.ends if sign == "*" and right.ends != "%" else ""
        )

    def _raised(self, _: str, base: _Term, exponent: _Term) -> _Term:
        self._check(base.kind in ("", "%") and not exponent.kind)
        return _Term(f"{base.at(ATOM)}**{exponent.at(SIGN)}", POWER, ends=base.ends and "!")

    def _converted(self, term: _Term, target: Token) -> _Term:
        roles = target.roles
        if "%" in roles and term.kind in ("", "%"):
            return _Term(f"{term.at(PRODUCT)}*100", PRODUCT, "percent")
        if "fraction" in roles and term.kind in ("", "%"):
            return self._as_fraction(term.text)
        if "base" in roles and not term.kind and roles["base"] != 10:
            return _Term(_BASES[roles["base"]].format(term.text))
        if "rad" in roles and term.kind == "deg":
            return _Term(f"math.radians({term.text})")
        if "deg" in roles and "math." in term.text and term.kind in ("", "deg", "rad"):
            is_done = term.text.startswith("math.degrees")
            return term if is_done else _Term(f"math.degrees({term.text})", kind="deg")
        for unit in roles.get("unit", ()):
            self._check(unit.kind != "money" or term.kind != "money", "exchange")
            if (
                unit.kind == "time"
                and term.unit
                and term.kind == "calendar"
                and term.unit.size == 12
            ):
                term = _Term(f"dt.timedelta(days={term.at(PRODUCT)}*365)", kind="time")
            if unit.kind == term.kind == "temperature" and term.unit and term.unit != unit:
                form = _TEMPERATURES[term.unit.symbol + unit.symbol]
                return _Term(form.replace("A", term.at(PRODUCT)), SUM, unit=unit)
            if unit.kind == term.kind == "time":
                one = self._measured(_Term("1"), unit)
                return _Term(f"{term.at(PRODUCT)}/{one.text}", PRODUCT, "amount", unit)
            if unit.kind == term.kind and term.unit:
                return _rescaled(term, unit)
        raise _NoReadingError

    def _as_fraction(self, text: str) -> _Term:
        self._check("math." not in text)
        text = re.sub(r"(?<![\w.])\d*\.\d+(?:e-?\d+)?", r"Fraction('\g<0>')", text)
        text = re.sub(r"(?<![\w.'/*])(\d+)/(\d+)(?![\w.'])", r"Fraction(\1, \2)", text)
        self._check("Fraction(" in text)
        return _Term(text)


def _decimal(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else repr(float(value))


def _wrap(value: Fraction) -> str:
    return f"({_decimal(value)})" if value < 0 else _decimal(value)


def _follows(group: Fraction | None, word: int, is_spoken: bool) -> bool:
    """Whether a number word can follow: five after twenty, not after six or ten."""
    if group is None:
        return True
    room = 10 ** len(str(word))
    return bool(is_spoken and word and group and group % room == 0 and group % 100 != 10)


def _fraction(value: Fraction) -> _Term:
    whole, part = divmod(value, 1)
    if not part or not whole:
        return _Term(str(value), PRODUCT if part else ATOM, ends="part")
    return _Term(f"{whole}+{part}", SUM, ends="part")


def _is_earlier(one: _Term, other: _Term) -> bool:
    times = [re.findall(r"=(\d+)", term.text) for term in (one, other)]
    return [int(number) for number in times[0]] < [int(number) for number in times[1]]


def _rescaled(term: _Term, unit: Unit) -> _Term:
    """The same amount in another unit, by one exact factor if there is one."""
    ratio = (term.unit.size if term.unit else Fraction(1)) / unit.size
    if ratio == 1:
        return replace(term, unit=unit)
    text = f"{term.at(PRODUCT)}*{ratio.numerator}/{ratio.denominator}"
    factors = sorted([("*", ratio), ("/", 1 / ratio)], key=lambda each: each[1].denominator)
    for sign, factor in reversed(factors):
        if (factor * 10**12).denominator == 1 and factor >= Fraction(1, 1000):
            text = f"{term.at(PRODUCT)}{sign}{f'{float(factor):.12f}'.rstrip('0').rstrip('.')}"
    return _Term(text, PRODUCT, unit.kind, unit)
