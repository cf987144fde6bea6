"""Reads what people type to a calculator: `15% of 80`, `корень из 16`, `5 ft 10 in in cm`.

    text    = {"start"} group ["where" name "=" group | ["=" group] ["to" target]] {"end"}
    group   = form | sum                             form: `subtract A from B`, `A more than B`
    sum     = product {("+" | "-") product ["tax"]}  a percent is of what stands before it
    product = signed {("*" | "/" | "of" | "") signed}
    signed  = ["neg"] postfix ["^" signed]
    postfix = atom {"!" | "%" | "deg" | unit | power}
    atom    = number | constant | value | date | clock | call operand | list items | "(" group ")"

The terminals are in words/*.txt. Every token is accounted for, or there is no reading. Where two
readings are sensible (`1,234`, `sin 5`, `6/2(1+2)`) both are given: the parser raises Choice, and
begins anew with each of the options. Numbers have a file of their own.
"""

import math
import re
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import pairwise, takewhile

from function.natural import terms
from function.natural.cursor import END, Choice
from function.natural.lexicon import Form, Token, Unit, forms
from function.natural.numbers import Numbers
from function.natural.terms import ATOM, PRODUCT, SUM, TODAY, NoReadingError, Term, check
from function.natural.typography import parses
from function.program import Program, can_draw, has_algebra
from sandbox import Policy

LONGEST = 200  # characters; a longer text is a program
MOST_PARSES = 24  # a text that can be read in more ways than that tries says nothing

_IMPORTS = {"Fraction(": "from fractions import Fraction\n", "statistics.": "import statistics\n"}
_OPERAND = ("number", "num", "vulgar", "python", "call", "list", "const", "scale", *"(|$€£₽")
_COMPARISONS = ("==", ">", "<", ">=", "<=", "!=")
_CLOSING = {"(": ")", "[": "]", "|": "|"}
_VARIABLES = dict(zip("xyzabnху?", "xyzabnxyx", strict=True))
_FORM_SIGNS = {"of": ("*", "%"), "day+": ("+", "date"), "day-": ("-", "date")}  # of what
_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "+-01234567890123456789")


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


def abilities(policy: Policy) -> frozenset[str]:
    """What a program may do that arithmetic does not: algebra with symbols, draw."""
    if not has_algebra(policy):
        return frozenset()
    return frozenset({"algebra", "draw"} if can_draw(policy) else {"algebra"})


def read(text: str, able: frozenset[str] = frozenset()) -> Reading:
    """Return the ways to read a short text in one line. Never raises; runs nothing.

    `able` names the abilities that a program has.
    """
    if len(text) > LONGEST or "\n" in text.strip():
        return Reading()
    found: dict[str, Expression] = {}
    refusal = ""
    paths: list[dict[str, str]] = [{}]
    for _ in range(MOST_PARSES):
        if not paths:
            refusal = f"write {refusal}" if refusal in able else refusal
            return Reading(tuple(found.values()), "" if found else refusal)
        chosen = paths.pop(0)
        try:
            parser = _Parser(text, chosen, able)
            expression = parser.parse()
            found.setdefault(expression.program, expression)
        except Choice as choice:
            first, *others = ({**chosen, choice.name: option} for option in choice.options)
            paths = [first, *paths, *others]
        except (NoReadingError, ZeroDivisionError, OverflowError, RecursionError) as error:
            refusal = refusal or str(error) * isinstance(error, NoReadingError) or parser.topic
    return Reading()


def read_lines(text: str, able: frozenset[str] = frozenset()) -> Reading:
    """Return the way to read several lines, each as a calculation, where each has but one."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found = [read(each, able).expressions or (Expression(each, each),) for each in lines]
    if any(len(each) != 1 or not parses(each[0].program) for each in found):
        return Reading()
    program = "\n".join(each.program for (each,) in found)
    notes = frozenset(note for (each,) in found for note in each.notes)
    return Reading((Expression(program, program, notes=notes),))


def shown(program: Program, output: str) -> str:
    """The values of a calculation: `0.5`, not `0.49999999999999994`, with their unit."""
    is_angular = re.search(r"math\.(?:sin|cos|tan)\(", program.source)

    def rounded(match: re.Match[str]) -> str:
        value = float(f"{float(match[0]):.14g}")
        value *= not (is_angular and abs(value) < 1e-15)
        return str(int(value)) if abs(value) < 1e15 and value % 1 == 0 else repr(value)

    def of_numbers(line: re.Match[str]) -> str:
        return re.sub(r"-?\d+(?:\.\d+(?:e[-+]\d+)?|e[-+]\d+)", rounded, line[0])

    text = re.sub(r"^[-+.,\de() ]+$", of_numbers, output.strip(), flags=re.MULTILINE)
    return f"{text} {program.unit}".rstrip()


class _Parser(Numbers):
    """Follows the grammar, with the choices that are given. Raises Choice for a further one."""

    # The text as a whole

    def parse(self) -> Expression:
        """The whole of the text. Raises NoReadingError."""
        asks_roots = False
        while not self._is("unit", ahead=1) and self._accept("start", ":", "="):
            asks_roots |= "algebra" in self._peek(-1).roles
        while self.tokens[self.place :] and not {"end", "=", ":"}.isdisjoint(self.tokens[-1].roles):
            self.tokens.pop()
        first = self._peek()
        self.is_alone = len(self.tokens) == self.place + 1
        says_all = ("number", "clock", "date", "const", "today", "vulgar", "value")
        check(not self.is_alone or self._is(*says_all))
        term = self._whole(asks_roots)
        check(self._peek() is END and term.text != "math.e")
        if self.unknown:
            check("algebra" in self.able)
            term = terms.symbolic(term, self.unknown)
        if re.fullmatch(r"[\d._]+|dt\.timedelta\(\w+=[\d._]+\)", term.text):  # 007, 1 000, два
            is_enclosed = re.search(r"[([]", self.line) and "=" not in self.line
            check(not (term.unit or term.kind == "time" or is_enclosed))
            check(not (self.is_alone and re.fullmatch(r"[1-9]\d*\.?\d*", first.text)))
        unit = term.unit.symbol if term.unit and term.kind != "time" else ""
        unit = {"deg": "°", "percent": "%"}.get(term.kind, unit)
        imports = "".join(line for name, line in _IMPORTS.items() if name in term.text)
        return Expression(imports + term.text, term.text, unit, frozenset(self.notes))

    def _whole(self, asks_roots: bool) -> Term:
        left = self._in_base() or self._group()
        if self._accept("where"):  # 3x + 2 where x = 4
            name, self.unknown = self.unknown, ""
            check(name and _VARIABLES.get(self._next().text) == name and self._accept("="))
            value = self._group()
            return left._replace(text=re.sub(rf"\b{name}\b", value.at(ATOM), left.text))
        if sign := self._accept(*_COMPARISONS):
            right = self._group()
            check(left.kind.strip("%") == right.kind.strip("%") != "temperature")
            right = right.rescaled(left.unit)
            if self.unknown:
                return self._roots(left, sign, right)
            return Term(f"{left.text} {sign} {right.text}")
        if asks_roots and self.unknown:
            return Term(f"solve({left.text}, {self.unknown})")
        return left.converted(self._next()) if self._accept("to") else left

    def _roots(self, left: Term, sign: str, right: Term) -> Term:
        """The number that an unknown is; if it is none, what sympy makes of it where that is."""
        if sign == "==":
            roots = self._attempt(partial(terms.solved, left, right))
            if roots and (roots.level == PRODUCT or "algebra" not in self.able):
                self.unknown = ""
                return roots
        is_given = not re.search(rf"\b{self.unknown}\b", right.text)
        check(left.text != self.unknown or not is_given)  # x = 5
        text = f"{left.text} {sign} {right.text}"
        if sign == "==":
            text = left.text if right.text == "0" else left.added("-", right).text
        return Term(f"solve({text}, {self.unknown})")

    def _in_base(self) -> Term | None:
        """`ff hex`, `hex ff`, `1010 binary`."""
        number = list(takewhile(lambda token: "to" not in token.roles, self.tokens[self.place :]))
        bases = [token.roles["base"] for token in number if "base" in token.roles]
        if not bases:
            return None
        digits = "".join(token.text for token in number if "base" not in token.roles)
        check(digits.isalnum() and digits.isascii())
        self.place += len(number)
        return Term(f'int("{digits}", {bases[0]})')

    # Groups

    def _group(self) -> Term:
        self._article()
        if found := self._any_form():
            return found
        left = self._sum()
        return self._any_form(left) or left

    def _any_form(self, left: Term | None = None) -> Term | None:
        """A form that begins here, or goes on after an operand."""
        for form in forms(self._peek().text):
            is_infix = form[1][0] == "A"
            if is_infix == bool(left) and (term := self._attempt(partial(self._form, form, left))):
                return term
        return None

    def _form(self, form: Form, left: Term | None) -> Term:
        """`divide A by B`: the whole of a group."""
        meaning, parts = form
        slots, unit = {"A": left or TODAY, "B": TODAY, "today": TODAY}, END
        for part, after in pairwise((*parts[left is not None :], "")):
            if part in ("A", "B"):
                operand = self._signed()
                slots[part] = operand if after == "E" else self._factors(operand)
            elif part in ("D", "E"):
                check(("draw" if meaning.startswith("plot(") else "algebra") in self.able)
                slots[part] = self._in_unknown()
                check(bool(self.unknown) != meaning.startswith("factorint("))
                slots["X"] = Term(self.unknown)
            else:
                token = self._next()
                check(token.text == part or part == "U")
                unit = token if part == "U" else unit
        check(self._peek() is END or self._is(")", "to", "="))
        if meaning == "A in U":
            return slots["A"].converted(unit)
        if re.search(r"\(|\*\*", meaning):
            return terms.called(meaning, slots)
        first, *steps = meaning.removesuffix(" %").split()
        term = slots[first]
        for word, name in zip(steps[::2], steps[1::2], strict=True):
            sign, kind = _FORM_SIGNS.get(word, (word, term.kind))
            check(term.kind == kind)
            work = term.added if sign in "+-" else term.multiplied
            term = work(sign, slots.get(name) or Term(name))
        return term._replace(kind="percent") if meaning.endswith("100 %") else term

    def _in_unknown(self) -> Term:
        """An expression, the whole of an equation, or what y is: `plot y = x^2`."""
        if (self._peek().text, self._peek(1).text) == ("y", "="):
            self.place += 2
        left = self._sum()
        return left.added("-", self._sum()) if self._accept("=") else left

    def _sum(self, first: Term | None = None) -> Term:
        left = self._product(first)
        while sign := self._accept("+", "-"):
            is_span = sign == "-" and self._peek(-1).glued and self._is("clock")
            right = self._product()
            if is_span and _times(left) < _times(right):
                left, right = right, left  # 9:00-17:30
            if (left.kind, left.unit, right.kind, right.ends) == ("time", None, "", "number"):
                name = self._choose("of time", "minutes", "hours")  # 10:30 + 15
                right = Term(f"dt.timedelta({name}={right.text})", kind="time")
            if right.kind == "%":
                self._accept("tax")
            left = left.added(sign, right)
        return left

    def _product(self, first: Term | None = None) -> Term:
        left = last = first or self._signed()
        while True:
            if self._continues(last) or (left.ends == "%" and self._is("number")):
                last = self._signed()  # 2(3+4), 18% 2500
                left = left.multiplied("*", last)
            elif self._is("of") and (left.kind == "%" or left.ends == "part"):
                self.place += 1
                last = self._extended(self._signed(), "+", "-")
                left = left.multiplied("*", last)
                left = left._replace(ends="part") if last.kind == "%" else left
            elif sign := self._operator():
                last = self._signed()
                is_part = (sign, left.ends, last.ends) == ("/", "number", "number")
                is_either = sign == "/" and self._continues(last)
                if is_either and self._choose("of /", "one", "all") == "all":
                    last = self._factors(last)
                left = left.multiplied(sign, last)
                check(not last.unit or self.chosen.get("unit m") != "time")  # 100 m / 9 s
                left = left._replace(ends="part") if is_part else left
            else:
                return left

    def _factors(self, left: Term) -> Term:
        """A term with what is multiplied by standing beside it."""
        while self._continues(left):
            left = left.multiplied("*", self._signed())
        return left

    def _extended(self, first: Term, *signs: str) -> Term:
        """An operand, or the sum that begins with it: `sqrt of 9 plus 16`, with no other `of`."""
        start = self.place
        more = self._is(*signs) and self._choose("of of", "one", "all") == "all"
        found = self._sum(first) if more else first
        taken = self.tokens[start : self.place]
        check(not any("of" in each.roles or each.text.endswith(" of") for each in taken))
        return found

    def _operator(self) -> str:
        token, after = self._peek(), self._peek(1)
        if token.text in ("x", "х"):
            return self._accept("*") if self._is_times() else ""
        check(not self.unknown or token.text != ":" or token.glued == after.glued)  # `x: 2x=6`
        if self._is("by") and self._is(*_OPERAND, ahead=1):
            self.place += 1
            is_times = any("times" in each.roles for each in self.tokens)  # quanto fa 6 per 7
            return "*" if is_times else self._choose("by", "*", "/")  # 6 на 7
        return self._accept("*", "//", "/", "mod", "%").replace("mod", "%")

    def _continues(self, last: Term) -> bool:
        """Whether the next token is multiplied by standing beside the last one."""
        token = self._peek()
        if self._is("("):
            return last.ends in ("number", ")", "name", "!", "part")
        if self._is("number"):
            return last.text.endswith("math.pi") and not token.glued  # 2 pi 3
        if token.text in _VARIABLES:
            return not self._is_times() and ("=" in self.line or "algebra" in self.able)
        is_infix = any(parts[0] == "A" for _, parts in forms(token.text))  # 5 choose 2
        return self._is("call", "const", "python") and not is_infix

    def _is_times(self) -> bool:
        """Whether an x is a sign: in `2 x 3` and `2x(3+4)`, but not in `2x(x+4) = 0`."""
        token = self._peek()
        is_unknown = "=" in self.line or "algebra" in self.able
        others = [each.text for each in self.tokens if each is not token]
        if token.glued and is_unknown and token.text in others and not self._is("number", ahead=1):
            return False
        return token.text in ("x", "х") and self._is(*_OPERAND, ahead=1)

    def _signed(self) -> Term:
        if sign := self._accept("neg", "+"):
            return self._signed().signed(sign.replace("neg", "-"))
        base = self._postfix(self._atom())
        if not self._accept("^", "**"):
            return base
        self.notes.add("power")
        is_set = self._accept("{")
        exponent = self._sum() if is_set else self._signed()
        check(not is_set or self._accept("}"))
        return base.raised(exponent)

    def _postfix(self, term: Term) -> Term:
        while True:
            token, start = self._peek(), self.place
            if self._is("+", "-", "*", ")"):  # for speed: a fifth of the time
                return term
            if self._is("power"):
                term = term.raised(Term(_superscript(self._next())))
            elif token.text == "i" and token.glued and term.ends == "number":
                self.place += 1
                term = Term(f"{term.text}j", ends="name")
            elif self._is("post"):
                template = self._next().roles["post"]
                check(not term.kind or template.startswith("A**"))
                term = terms.called(self._option(template), {"A": term})._replace(ends="!")
            elif term.kind:
                return term
            elif self._is("%") and self._is_percent(term, token):
                self.place += 1
                self.notes.add("percent")
                term = term.multiplied("/", Term("100"))._replace(kind="%", ends="%")
            elif role := self._accept("deg", "rad"):
                term = term._replace(kind=role, ends="")
            elif self._is("unit") and not (self._is("number", ahead=1) and self._is("form")):
                term = self._quantity(term)
            if self.place == start:
                return term

    def _is_percent(self, term: Term, token: Token) -> bool:
        """Whether a % sign means a hundredth here, not a remainder."""
        after = self._peek(1)
        if token.text != "%" or self._is("of", "to", "form", ahead=1):
            return True
        if not self._is(*_OPERAND, ahead=1) or self._is("*", ahead=1):
            return token.glued or not self._is("+", "-", ahead=1)
        if term.ends != "number" or not self._is("number", ahead=1) or self._is("%", ahead=2):
            return False
        is_less = after.text.isdecimal() and (term.value or 0) < int(after.text)
        return is_less or (token.glued and not after.glued)

    def _quantity(self, term: Term) -> Term:
        """A number with its unit, and what follows in a smaller one: `5 ft 10 in`, `1h 20 min`."""
        token = self._peek()
        if "to" in token.roles and self._is("%", "fraction", "deg", "base", ahead=1):
            return term  # `0.6 in fraction`: not inches
        self.place += 1
        kinds = [each.kind for each in token.roles["unit"]]
        kind = self._choose(f"unit {token.text}", *kinds) if len(kinds) > 1 else kinds[0]
        unit: Unit = token.roles["unit"][kinds.index(kind)]
        found = self._of_money(terms.quantity(term, unit))

        def smaller() -> Term:
            self._accept("and")
            more = self._postfix(self._number())
            check(more.kind == kind and more.unit and more.unit.size < unit.size)
            check(token.text != "'" or (more.value or 0) < 12)
            return found.added("+", more)

        return self._attempt(smaller) or found

    def _of_money(self, term: Term) -> Term:
        """Money has no thousandths: the comma of `$1,000` is no decimal sign."""
        is_thousands = self.comma == "," and re.search(r"\.\d{3}", term.text)
        check(term.kind != "money" or not is_thousands)
        return term

    # Atoms

    def _article(self) -> None:
        """Step over `the` before what bears it."""
        bears = self._is("call", "list", "part", "scale", "form", "ord", ahead=1)
        if self._is("the") and (bears or self._is("%", ahead=2)):
            self.place += 1

    def _atom(self) -> Term:
        if self._is("number"):
            return self._number()
        self._article()
        if self._is("num", "vulgar", "scale", "part", "ord", "point"):
            return self._number()
        if self._is("unit", ahead=1) and self._accept("the"):  # seconds in a day
            return Term("1", ends="number")
        if self._is("list") and (term := self._attempt(self._list)):
            return term
        if self._is("call"):
            return self._call()
        if opening := self._accept(*_CLOSING):
            check(opening != "[" or self.comma != ",")  # else it is a list
            inner = self._group()
            is_end = opening != "|" and self._peek() is END
            check(is_end or self._accept(_CLOSING[opening]))
            if opening == "|":
                return Term(f"abs({inner.text})", ends=")")
            return inner._replace(kind=inner.kind.replace("%", ""), ends=")")
        return self._name(self._next())

    def _name(self, token: Token) -> Term:
        roles = token.roles
        if "const" in roles:
            return Term(roles["const"], ends="name")
        if "value" in roles:
            return Term(roles["value"])
        if "python" in roles:
            return Term(token.text + self._operands(token.text[5:]), ends="name")
        if "date" in roles:
            return self._date(token.text)
        if "clock" in roles:
            return self._clock(token.text)
        if "today" in roles:
            return Term(roles["today"], SUM if "timedelta" in roles["today"] else ATOM, "date")
        if "unit" in roles and roles["unit"][0].kind == "money":
            return self._of_money(terms.quantity(self._number(), roles["unit"][0]))
        if "i" in roles and re.search(r"\di\b|\bi\s*\^", self.line):
            return Term("1j", ends="name")
        variable = _VARIABLES.get(token.text)
        check(variable and self.unknown in ("", variable))
        self.unknown = variable or ""
        return Term(self.unknown, ends="name")

    def _operands(self, name: str) -> str:
        """What is in the brackets after a function of Python's own, as many as it takes."""
        if not self._accept("("):
            return ""
        operands = [item.text for item in self._items(")")]
        try:
            signature(getattr(math, name)).bind(*operands)
        except ValueError:  # Python has no signature of math.log and a few others
            pass
        except (AttributeError, TypeError):
            raise NoReadingError from None
        return f"({', '.join(operands)})"

    def _date(self, text: str) -> Term:
        self.notes.add("date")
        first, second, third = (int(number) for number in re.split(r"[-/.]", text))
        if first >= 1000:
            return terms.date(first, second, third)
        is_american = "/" in text and self._choose("date", "month", "day") == "month"
        return terms.date(third, first, second) if is_american else terms.date(third, second, first)

    def _clock(self, text: str) -> Term:
        """`15:30`, `3:30 pm`; a quotient where it stands alone."""
        hours, minutes, seconds, *_ = (*map(int, re.findall(r"\d+", text)), 0, 0)
        half = re.search("[ap]", text)
        if half:
            check(1 <= hours <= 12)
            hours = hours % 12 + 12 * (half[0] == "p")
        elif self.is_alone and self._choose("colon", "clock", "/") == "/":
            check(minutes and not seconds)
            return Term(f"{hours}/{minutes}", PRODUCT)
        rest = f", minutes={minutes}" * bool(minutes) + f", seconds={seconds}" * bool(seconds)
        return Term(f"dt.timedelta(hours={hours}{rest})", kind="time")

    # Functions and lists

    def _call(self) -> Term:
        token = self._next()
        template, power = token.roles["call"], None
        if re.search(r"(?:sin|cos|tan)\(", template):  # sin^2 30
            if self._accept("^"):
                power = self._number()
            elif self._is("power"):
                power = Term(_superscript(self._next()))
                check(power.text.isdecimal())
        if "math.log(A, B)" in template and (base := self._base()):
            template = f"math.log{base}(A)" if base in ("2", "10") else f"math.log(A, {base})"
        is_spoken = self._accept("of") or token.text.endswith(" of")
        if self._accept("("):
            operands = self._items(")")
        else:
            operands = [self._operand()]
            if is_spoken:
                operands[0] = self._extended(operands[0], "+", "-", "*", "/")
            elif "rt(" in template and token.text not in "√∛" and self._peek().text not in "+-":
                operands[0] = self._extended(operands[0], "+", "-")  # корень 9 плюс 16
            check(not self._is("^") or token.text in "√∛")
        if "math.log(B, A)" in template:  # log 2 8
            check("_" not in operands[0].text or operands[0].text.endswith("_000"))
            if len(operands) == 1 and self._is("number", "num"):
                operands.append(self._operand())
        check(len(operands) <= 2)
        term = self._applied(template, dict(zip("AB", operands, strict=False)))
        return term.raised(power) if power else term

    def _base(self) -> str:
        """The base of `log2 8`, `log_2 8` and `log₁₀ 1000`."""
        if self._accept("_"):
            return self._next().text
        is_glued = self._peek().glued and self._peek().text in ("2", "10")
        return _superscript(self._next()) if is_glued or self._is("subscript") else ""

    def _operand(self) -> Term:
        """The operand of a function without brackets."""
        if self._accept("neg"):
            return self._operand().signed("-")
        term = self._postfix(self._atom())
        while self._is("const") and self._continues(term):
            term = term.multiplied("*", self._atom())
        if "math.pi" in term.text and self._is("/") and self._is("number", ahead=1):
            self.place += 1
            term = term.multiplied("/", self._number())
        return term

    def _applied(self, template: str, slots: dict[str, Term]) -> Term:
        """A function; of an angle in degrees or radians, or both where either may be meant."""
        options = [each for each in template.split(" or ") if ("B" in each) == ("B" in slots)]
        if re.search("[,;]", self.line):  # in Python's order
            options = [each for each in options if "(B, A)" not in each]
        check(options)
        if "math.radians" not in template:
            return terms.called(self._option(" or ".join(options)), slots)
        of_degrees, of_radians = options
        angle = slots["A"]
        value = None if "math." in angle.text else angle.value
        sizes = [float(size) for size in re.findall(r"\d+(?:\.\d+)?", angle.text)]
        if angle.kind == "deg":
            option = of_degrees
        elif angle.kind or value == 0 or re.search(r"math\.|\b[a-z]\b", angle.text):
            option = of_radians
        else:
            is_large = max(sizes, default=0) >= 10
            option = of_degrees if is_large else self._choose("angle", of_degrees, of_radians)
        pole = {"math.tan": 90, "1/math.t": 0}.get(option[:8])
        check(option == of_radians or value is None or pole is None or value % 180 != pole)
        return terms.called(option, slots, ("", "%", "deg", "rad"))

    def _list(self) -> Term:
        template = self._next().roles["list"]
        self._accept("of")
        outer, self.in_list = self.in_list, True
        is_enclosed = bool(self._accept("("))
        items = self._items(")" if is_enclosed else "")
        self.in_list = outer
        check(len(items) > 1 and len({(item.kind, item.unit) for item in items}) == 1)
        is_amount = items[0].unit and items[0].kind not in ("time", "temperature")
        check(not items[0].kind or (is_amount and not re.search("prod|variance", template)))
        joined = Term(", ".join(item.text for item in items))
        term = terms.called(template.replace("N", str(len(items))), {"A": joined})
        ends = ")" if is_enclosed else ""
        return term._replace(kind=items[0].kind, unit=items[0].unit, ends=ends)

    def _items(self, closing: str) -> list[Term]:
        """Operands that are separated in one way; in brackets, to the closing one or the end."""
        operand = self._sum if closing else self._signed
        apart = ("number",) if closing else ("number", "num", "vulgar", "neg")
        items, separators = [operand()], set[str]()
        while not (closing and (self._accept(closing) or self._peek() is END)):
            separator = self._accept(";", ",")
            separator = (self._accept("and") and (separator or "and")) or separator
            if not separator and not self._is(*apart):
                check(not closing)
                break
            separators.add(separator)
            items.append(operand())
        check(len(separators - {"and"}) <= 1)
        numbers = re.findall(r"\d[\d,]*", self.line)
        is_decimal = all(re.fullmatch(r"\d+,\d+", number) for number in numbers)
        check(closing or not (self.comma == "list" and "and" in separators and is_decimal))
        return items


def _superscript(token: Token) -> str:
    return token.text.translate(_SUPERSCRIPTS).lstrip("+")


def _times(term: Term) -> list[int]:
    """The numbers of a clock time."""
    return [int(number) for number in re.findall(r"=(\d+)", term.text)]
