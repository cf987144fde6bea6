"""A sum in the words of any language reads back to its value, or is refused; never to another."""

import cmath
import math
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function.natural.reader import read

ENGLISH = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divided by",
    "^": "to the power of",
    "of": "% of",
    "root": "square root of",
    "square": "squared",
    "negative": "minus",
    7: "seven",
    16: "sixteen",
    25: "twenty-five",
    142: "one hundred and forty-two",
}
RUSSIAN = {
    "+": "плюс",
    "-": "минус",
    "*": "умножить на",
    "/": "разделить на",
    "^": "в степени",
    "of": "процентов от",
    "root": "корень из",
    "square": "в квадрате",
    "negative": "минус",
    7: "семь",
    16: "шестнадцать",
    25: "двадцать пять",
    142: "сто сорок два",
}
GERMAN = {
    "+": "plus",
    "-": "minus",
    "*": "mal",
    "/": "geteilt durch",
    "^": "hoch",
    "of": "prozent von",
    "root": "wurzel aus",
    "square": "²",
    "negative": "minus",
    7: "sieben",
    16: "sechzehn",
    25: "fünfundzwanzig",
    142: "hundertzweiundvierzig",
}
SPANISH = {
    "+": "más",
    "-": "menos",
    "*": "por",
    "/": "entre",
    "^": "elevado a",
    "of": "% de",
    "root": "raíz cuadrada de",
    "square": "al cuadrado",
    "negative": "menos",
    7: "siete",
    16: "dieciséis",
    25: "veinticinco",
    142: "ciento cuarenta y dos",
}
FRENCH = {
    "+": "plus",
    "-": "moins",
    "*": "fois",
    "/": "divisé par",
    "^": "puissance",
    "of": "% de",
    "root": "racine carrée de",
    "square": "au carré",
    "negative": "moins",
    7: "sept",
    16: "seize",
    25: "vingt-cinq",
    142: "cent quarante-deux",
}
ITALIAN = {
    "+": "più",
    "-": "meno",
    "*": "volte",
    "/": "diviso",
    "of": "% di",
    "root": "radice quadrata di",
    "square": "al quadrato",
    "negative": "meno",
    7: "sette",
    16: "sedici",
    25: "venticinque",
}
PORTUGUESE = {
    "+": "mais",
    "-": "menos",
    "*": "vezes",
    "/": "dividido por",
    "of": "por cento de",
    "root": "raiz quadrada de",
    "square": "ao quadrado",
    "negative": "menos",
    7: "sete",
    16: "dezesseis",
    25: "vinte e cinco",
}
POLISH = {
    "+": "plus",
    "-": "minus",
    "*": "razy",
    "/": "podzielić przez",
    "of": "procent z",
    "root": "pierwiastek z",
    "square": "do kwadratu",
    "negative": "minus",
    7: "siedem",
    16: "szesnaście",
    25: "dwadzieścia pięć",
}
SIGNS = {
    "+": "+",
    "-": "−",
    "*": "×",
    "/": "÷",
    "^": "^",
    "of": "% of",
    "root": "√",
    "square": "²",
    "negative": "-",
}


class Spoken(NamedTuple):
    """A text, how tightly it binds, and its value; None where it has none."""

    text: str
    level: int
    value: Fraction | None

    def at(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


def spoken_trees(words: dict[object, str]) -> st.SearchStrategy[Spoken]:
    numbers = [number for number in words if isinstance(number, int)] or [7, 16, 25, 142]
    leaves = st.sampled_from(numbers).flatmap(
        lambda number: st.sampled_from(
            [
                Spoken(str(number), 5, Fraction(number)),
                Spoken(f"{number},5", 5, number + Fraction(1, 2)),
                Spoken(words.get(number, str(number)), 5, Fraction(number)),
            ]
        )
    )
    return st.recursive(leaves, lambda inner: joined(words, inner), max_leaves=6)


def joined(words: dict[object, str], inner: st.SearchStrategy[Spoken]) -> st.SearchStrategy[Spoken]:
    space = st.sampled_from([" ", "  "])

    def pair(sign: str, left: Spoken, right: Spoken, gap: str) -> Spoken:
        level, inner_level = {"+": (1, 2), "-": (1, 2), "*": (2, 3), "/": (2, 3)}[sign]
        text = f"{left.at(level)}{gap}{words[sign]}{gap}{right.at(inner_level)}"
        return Spoken(text, level, worked_out(sign, left.value, right.value))

    def prefixed(name: str, operand: Spoken) -> Spoken:
        if name == "negative":
            value = None if operand.value is None else -operand.value
            return Spoken(f"{words[name]} {operand.at(4)}", 3, value)
        if name == "of":
            value = None if operand.value is None else operand.value * 3 / 20
            return Spoken(f"15 {words[name]} {operand.at(5)}", 2, value)
        if name == "square":
            value = None if operand.value is None else operand.value**2
            return Spoken(f"{operand.at(5)} {words[name]}", 4, value)
        return Spoken(f"{words[name]} 49", 2, Fraction(7))

    pairs = st.builds(pair, st.sampled_from("+-*/"), inner, inner, space)
    others = st.builds(prefixed, st.sampled_from(["negative", "of", "square", "root"]), inner)
    return pairs | others


def worked_out(sign: str, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    if left is None or right is None or (sign == "/" and not right):
        return None
    return {"+": left + right, "-": left - right, "*": left * right}.get(sign, left / (right or 1))


@pytest.mark.parametrize(
    "words",
    [ENGLISH, RUSSIAN, GERMAN, SPANISH, FRENCH, ITALIAN, PORTUGUESE, POLISH, SIGNS],
)
@settings(max_examples=30)
@given(st.data())
def test_a_tree_in_words_reads_back_to_its_value_or_is_refused(
    words: dict[object, str], data: st.DataObject
) -> None:
    spoken = data.draw(spoken_trees(words))
    expressions = read(spoken.text).expressions
    if spoken.value is None or not expressions:
        return
    values = [eval(each.program, {"math": math}) for each in expressions]
    near = [cmath.isclose(value, spoken.value, rel_tol=1e-9, abs_tol=1e-9) for value in values]
    assert any(near), (spoken.text, float(spoken.value), values)
