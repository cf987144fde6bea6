"""Numbers in digits and in words: `1.234,5`, `3 1/2`, `twenty five`, `две целых пять десятых`."""

import re
import unicodedata
from fractions import Fraction
from functools import partial
from itertools import pairwise

from function.natural import terms
from function.natural.cursor import Cursor
from function.natural.terms import Term, check

_DIGITS = re.compile(
    r"(\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d\d)+,\d{3}|\d*)(?:\.(\d+))?(e[-+]?\d+)?"  # 12,34,567.5e3
)
_NOTHING, _LARGEST = Fraction(0), Fraction(10**30)
_SWAPPED = str.maketrans(",.", ".,")


class Numbers(Cursor):
    """Reads a number."""

    def _number(self) -> Term:
        """`2.5`, `3 1/2`, `2½`, `10k`, `twenty five`, `3 million 200 thousand`, `two thirds`."""
        total, group, floor = _NOTHING, None, _LARGEST
        start, text, is_spoken = self.place, "", False
        while True:
            token, roles = self._peek(), self._peek().roles
            word = roles.get("num", None if self._is("of", ahead=1) else roles.get("ord"))
            if "number" in roles and group is None:
                group, text = self._digits(token.text)
                check(group < floor)
            elif "vulgar" in roles and not is_spoken:
                self.place += 1
                value = Fraction(unicodedata.numeric(token.text)).limit_denominator(10)
                return terms.fraction(total + (group or 0) + value)
            elif word is not None and _follows(group, word, is_spoken):
                group, is_spoken = (group or 0) + Fraction(word), True
            elif self._is_scale(group):
                step = roles["scale"]
                scaled = (1 if group is None else group) * step
                check(step < floor and (step != 100 or scaled < 10_000))
                if step == 100:
                    group, is_spoken = scaled, True
                else:
                    floor, total, group = step, total + scaled, None
            elif role := self._accept("point", "whole"):
                check((group or 0).denominator == 1)
                group, is_spoken, text = (group or 0) + self._decimals(role), False, ""
                continue
            elif not (is_spoken and group and self._joins(group)):
                break
            self.place += 1
        value = total + (group or 0)
        if self._is("part") and (self.place == start or self._is("of", ahead=1)):
            value = Fraction(1) if self.place == start else value
            return terms.fraction(value / self._next().roles["part"])
        check(self.place > start)
        if self.place > start + 1 or not text:
            return Term(terms.decimal(value), ends="number")
        mixed = self._attempt(partial(self._mixed, value))
        return mixed or self._attempt(partial(self._part, value)) or Term(text, ends="number")

    def _is_scale(self, group: Fraction | None) -> bool:
        """Whether a word scales the number before it: `k` is a thousand here, not kelvin."""
        token = self._peek()
        is_short = len(token.text) < 3 and (
            group is None or ("form" in token.roles and not token.glued)
        )
        if not self._is("scale") or is_short:
            return False
        name = f"unit {token.text}"
        is_either = self._is("unit") and self._is("to", ahead=1)
        return not is_either or self._choose(name, "scale", "temperature") == "scale"

    def _joins(self, group: Fraction) -> bool:
        """Whether `and` goes on with a number in words."""
        word = self._peek(1).roles.get("num", 0)
        return self._is("and") and group >= 20 and 0 < word < 100 and not self.in_list

    def _decimals(self, role: str) -> Fraction:
        """What follows in `two point two five` and `две целых двадцать пять сотых`."""
        self._accept("and")
        digits: list[str] = []
        while self._is("num", "number"):
            token = self._next()
            digits.append(str(token.roles.get("num", token.text)))
        check(digits and all(each.isdecimal() for each in digits))
        if role == "point":
            check(len(digits) == 1 or all(len(each) == 1 for each in digits))
            return Fraction(f"0.{''.join(digits)}")
        numbers = list(map(int, digits))
        check(all(_follows(Fraction(one), other, True) for one, other in pairwise(numbers)))
        check(self._is("part") and sum(numbers) < self._peek().roles["part"])
        return Fraction(sum(numbers), self._next().roles["part"])

    def _mixed(self, whole: Fraction) -> Term:
        """`3 1/2`."""
        over, slash, under = self._next(), self._next(), self._next()
        check(slash.text == "/" and slash.glued and under.glued and not over.glued)
        check(over.text.isdecimal() and len(over.text) < 3 and under.text.isdecimal())
        check(0 < int(over.text) < int(under.text))
        return terms.fraction(whole + Fraction(int(over.text), int(under.text)))

    def _part(self, over: Fraction) -> Term:
        """The number in `3/4 cup`."""
        slash, under = self._next(), self._next()
        check(slash.text == "/" and slash.glued and under.glued and under.text.isdecimal())
        check(over < int(under.text) and self._is("unit") and not self._is("scale", "to"))
        return terms.fraction(over / int(under.text))

    def _digits(self, text: str) -> tuple[Fraction, str]:
        """The value of a number, and how Python writes it."""
        is_swapped = self.comma == ","
        bare = re.sub("[ ']", "," if "," in text and not is_swapped else "", text)
        match = _DIGITS.fullmatch(bare.translate(_SWAPPED) if is_swapped else bare)
        digits, decimals, exponent = match.groups("") if match else ("00", "", "")
        digits = digits.replace(",", "")
        check(match and (self.is_alone or not re.match(r"0\d", digits)))
        if "," in text:
            self.notes.add("comma" if is_swapped and decimals else "group")
        is_grouped = not decimals and not text.isdecimal()
        written = f"{int(digits):_}" if is_grouped else digits.lstrip("0") or digits[:1]
        python = f"{written}.{decimals}{exponent}" if decimals else written + exponent
        return Fraction(f"{digits or 0}.{decimals or 0}{exponent}"), python


def _follows(group: Fraction | None, word: int, is_spoken: bool) -> bool:
    """Whether a number word can follow: five after twenty, not after six or ten."""
    if group is None:
        return True
    room = 10 ** len(str(word))
    return bool(is_spoken and word and group and group % room == 0 and group % 100 != 10)
