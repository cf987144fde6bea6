"""One line of help beside Python's answer."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function.natural import hints
from function.natural.typography import normalise
from function.program import Program, line_by_line
from sandbox import Outcome, Policy, Violation, load_policy, parse
from tools.serve import ROOT

POLICY = load_policy(ROOT / "policy.yaml")
MATHS = load_policy(ROOT / "sandbox/policies/maths.yaml")


def program(typed: str) -> Program:
    source = normalise(typed) or typed
    return line_by_line(Program(typed, source, parse(source)))


def hint(typed: str, outcome: Outcome, policy: Policy = POLICY) -> str | None:
    """The hint with its code in backticks."""
    found = hints.hint(program(typed), outcome, policy)
    return "".join(f"`{text}`" if kind else text for kind, text in found) or None


def ok(output: str) -> Outcome:
    return Outcome("ok", output=f"{output}\n")


def error(text: str) -> Outcome:
    return Outcome("error", error=text)


def no_name(name: str) -> Outcome:
    return error(f"NameError: name '{name}' is not defined")


def no_syntax(message: str = "invalid syntax") -> Outcome:
    return Outcome("syntax_error", error=f"SyntaxError: {message}")


def refused(name: str) -> Outcome:
    return Outcome("rejected", violations=(Violation("dangerous-name", 1, 1, "", name),))


CASES = [
    # source, outcome, what the hint holds
    ("x = input()", refused("input"), "`n = 5`"),
    (
        "solve(x^2-4)",
        error("TypeError: unsupported operand type(s) for ^: 'Symbol' and 'int'"),
        "`solve(x**2-4)`",
    ),
    (
        "plt.savefig('a.png')",
        error("PermissionError: [Errno 1] Operation not permitted: 'a.png'"),
        "`savefig`",
    ),
    ("np.load('a')", error("FileNotFoundError: [Errno 2] No such file or directory: 'a'"), "paste"),
    ("f = integrate(x, 0, 1)", error("ValueError: Invalid limits given: (0, 1)"), "`integrate("),
    ("f([[1, 2]])", error("AttributeError: 'list' object has no attribute 'is_Matrix'"), "Matrix"),
    (
        "solve(abs(x) - 1, x)",
        error("NotImplementedError: Abs(x) when the argument is not real or imaginary"),
        "real=True",
    ),
    ("solve(f(x))", error("NotImplementedError: No algorithms are implemented to solve"), "nsolve"),
    ("plt.plot(x, x)", error("TypeError: Cannot convert expression to float"), "np.linspace"),
    ("2^10", ok("8"), "`2**10`"),
    ("2^10=", ok("8"), "`2**10`"),
    ("2^0.5", error("TypeError: unsupported operand type(s) for ^: 'int' and 'float'"), "`2**0.5`"),
    (
        "x = 1.5\nx^2",
        error("TypeError: unsupported operand type(s) for ^: 'float' and 'int' (line 2)"),
        "`**`",
    ),
    ("1,000,000", ok("(1, 0, 0)"), "`1_000_000`"),
    ("1,5+2,5", ok("(1, 7, 5)"), "`1.5+2.5`"),
    ("1.000,50", ok("(1.0, 50)"), "`1000.50`"),
    ("12,50\n7,30\n3.20", ok("(12, 50)\n(7, 30)\n3.2"), "`12.50\n7.30\n3.20`"),
    ('printf("%d", 5);', no_name("printf"), '`print("%d" % (5))`'),
    ("0.1+0.2", ok("0.30000000000000004"), "`round(0.1+0.2, 10)`"),
    ("0.1+0.2==0.3", ok("False"), "`math.isclose(0.1 + 0.2, 0.3)`"),
    ("12/25/2024", ok("0.00023715415019762845"), "`dt.date(2024, 12, 25)`"),
    ("2026-12-25 - 2026-11-29", ok("-77"), "`(dt.date(2026, 12, 25)-dt.date(2026, 11, 29)).days`"),
    ("calc: 2+2", Outcome("ok"), "`2+2`"),
    (
        "sum(1,2,3)",
        error("TypeError: sum() takes at most 2 arguments (3 given)"),
        "`sum([1, 2, 3])`",
    ),
    ("5—3", ok("2"), "`—` was read as a minus"),
    ("log(100)", no_name("log"), "`math.log10(100)`"),
    ("sin(30)", no_name("sin"), "`math.sin(math.radians(30))`"),
    ("sqrt(2)", no_name("sqrt"), "`math.sqrt(2)`"),
    ("pi", no_name("pi"), "`math.pi`"),
    ("Math.sqrt(9)", no_name("Math"), "`math.sqrt(9)`"),
    ("x = 1\nln(x)", no_name("ln"), "`math.log`"),
    ("x = 1\nfact(x)", no_name("fact"), "`math.factorial`"),
    ("randint(1, x)", no_name("randint"), "`random.randint`"),
    ("x = date(2026, 1, 1)", no_name("date"), "`dt.date`"),
    ("time.time()", no_name("time"), "`import time`"),
    ("Decimal(x)", no_name("Decimal"), "`from decimal import Decimal`"),
    ("x = 9\nsqrt(x)", error("NameError: name 'sqrt' is not defined (line 2)"), "`math.sqrt`"),
    ("true", no_name("true"), "`True`"),
    ("statistics.mean([1])", no_name("statistics"), "`import statistics`"),
    ('Counter("aab")', no_name("Counter"), "`from collections import Counter`"),
    ("print(hello)", no_name("hello"), '`print("hello")`'),
    ("ans + 1", no_name("ans"), "your last answer here"),
    ("print(2^10)", ok("8"), "`print(2**10)`"),
    ("x = 3; x^2", ok("1"), "`x = 3; x**2`"),
    ("x = 2,5; x*2", ok("(2, 5, 2, 5)"), "`x = 2.5; x*2`"),
    ("60 + 10% + 5", ok("60"), "`60*(1+10/100)+5`"),
    ("18% 2500", ok("18"), "`18/100*2500`"),
    ("sin 5", no_syntax(), "`math.sin(math.radians(5))` or `math.sin(5)`"),
    ("5 usd to eur", no_syntax(), "no exchange rates"),
    ("100€ in dollars", no_syntax("invalid character '€' (U+20AC)"), "no exchange rates"),
    (
        "solve x^2 - 5x + 6 = 0",
        no_syntax("invalid decimal literal"),
        "`((5+1)/2, (5-1)/2)`",
    ),
    ("derivative of x^2", no_syntax(), "only with numbers"),
    ("plot x^2", no_syntax(), "Nothing can be drawn"),
    ("2026-01-05", no_syntax("leading zeros in decimal integer literals"), "`dt.date(2026, 1, 5)`"),
    ("007", no_syntax("leading zeros in decimal integer literals"), "`7`"),
    ("20 + 10%", no_syntax(), "`20*(1+10/100)`"),
    ("5%", no_syntax(), "`5/100`"),
    (" 5%", Outcome("syntax_error", error="IndentationError: unexpected indent"), "`5/100`"),
    ("(2+3)(4+5)", error("TypeError: 'int' object is not callable"), "`(2+3)*(4+5)`"),
    ("2+2 = 4", no_syntax("cannot assign to expression here"), "`2+2 == 4`"),
    ("5!", no_syntax(), "`math.factorial(5)`"),
    ("if 5 > 3 then print yes", no_syntax(), '`print("yes") if 5 > 3 else None`'),
    ("let x = 5", no_syntax(), "`x = 5`"),
    ("007+1", no_syntax("leading zeros in decimal integer literals"), "`7+1`"),
    ("PRINT(5)", no_name("PRINT"), "`print(5)`"),
    ('console.log("(")', no_name("console"), '`print("(")`'),
    ("5 > 3 ? True : no", no_syntax(), '`True if 5 > 3 else "no"`'),
    ("5; 6", ok("6"), "Only the last value"),
    ("if x = 5 then print x else y", no_syntax(), '`print(x) if x == 5 else "y"`'),
    ("if max(1, 2) > 1 then 3", no_syntax(), "`3 if max(1, 2) > 1 else None`"),
    ("5 > 3 ? low : 0", no_syntax(), '`"low" if 5 > 3 else 0`'),
    ("say hello, world", no_syntax(), '`print("hello, world")`'),
    ("x = 5, y = 3", no_syntax(), "`x = 5; y = 3`"),
    ("x>2 && !y || x<>1", no_syntax(), "`x>2 and not y or x!=1`"),
    ("i = 5; i++", no_syntax(), "`i = 5; i += 1`"),
    ('console.log("a && b", !x)', no_name("console"), '`print("a && b", not x)`'),
    ("Print(5", no_syntax("'(' was never closed"), "`print(5)`"),
    ("1+1; 2+2", ok("4"), "Only the last value"),
    ("hello", no_name("hello"), "/help"),
    ("hello there", no_syntax(), "/help"),
    ("help", refused("help"), "/help"),
]


@pytest.mark.parametrize(("source", "outcome", "held"), CASES)
def test_a_surprise_has_its_hint(source: str, outcome: Outcome, held: str) -> None:
    assert held in (hint(source, outcome) or "")


def test_every_kind_of_hint_is_the_hint_of_some_case() -> None:
    found = set()
    for source, outcome, _ in CASES:
        case = hints.Case(program(source), outcome, POLICY)
        found.add(next(find for find in hints._HINTS if find(case)))
    assert set(hints._HINTS) - found == set()


def test_every_sentence_is_the_hint_of_some_case() -> None:
    said = [hint(source, outcome) for source, outcome, _ in CASES]
    said += [hint(source, no_syntax(), MATHS) for source in POSSIBLE]
    text = "\n".join(map(str, said))
    sentences = [*hints._SENTENCES.values(), *(row["said"] for row in hints._TEXTS["patterns"])]
    found = [re.search(re.escape(each).replace(r"\\1", r"\w+"), text) for each in sentences]
    assert all(found)


POSSIBLE = {"solve + by": "solve(x**2 - 2)", "plot + by": "plot(sin(x)"}


@pytest.mark.parametrize("source", POSSIBLE)
def test_what_the_policy_has_is_not_denied(source: str) -> None:
    said = hint(source, no_syntax(), MATHS) or ""
    assert "Write it in Python" in said
    assert POSSIBLE[source] in said
    assert hint("x++", no_syntax(), MATHS) == "In Python: `x += 1`"
    assert "here" in (hint(source, no_syntax()) or "")


def test_what_is_imported_is_told_by_the_policy() -> None:
    strict = replace(POLICY, allowed_imports={"statistics": None}, preloaded={})
    assert hint("x = mean(y)", no_name("mean"), strict) == (
        "`mean` must be imported first: `from statistics import mean`"
    )
    assert hint("x = Counter(y)", no_name("Counter"), strict) is None
    assert hint("x = sqrt(2)", no_name("sqrt"), strict) is None


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("2+2", ok("4")),
        ("100/3", ok("33.333333333333336")),
        ("(120-95)/120*100", ok("20.833333333333336")),
        ("1, 2", ok("(1, 2)")),
        ("(1,2)", ok("(1, 2)")),
        ("x = 2; x + 1", ok("3")),
        ("'''doc'''; 2", ok("2")),
        ("a = [1]; a.append(2); a", ok("[1, 2]")),
        ("console.log(y)", no_name("y")),
        ("if x = 5 then y = 6", no_syntax()),
        ("max(1,5)", ok("5")),
        ("0b101 ^ 0b1", ok("4")),
        ("a, b = 5, 3\na ^ b", ok("6")),
        ("flags = 6\nflags & 4 ^ 2", ok("6")),
        ("# 2^10\n2**3", ok("8")),
        ("s = '2^10'\nprint(s)", ok("2^10")),
        ("1==1", ok("True")),
        ("5%3", ok("2")),
        ("2024-1", ok("2023")),
        ("print('usd to eur')", ok("usd to eur")),
        ("graph = 1\nprint(grap)", no_name("grap")),
        ("solve = 1\nsolve(", no_syntax()),
        ('print("—")', ok("—")),
        ("2.5 == 2.4", ok("False")),
        ("1/0", error("ZeroDivisionError: division by zero")),
        ("a = 5\na()", error("TypeError: 'int' object is not callable (line 2)")),
        ("x == 5 if", no_syntax()),
        ("'unterminated", no_syntax("unterminated string literal (detected at line 1)")),
        ("while True: pass", Outcome("cpu_limit", error="computed longer than 2 s")),
        ("2+2", Outcome("busy", error="too many programs")),
        ("import os", refused("os")),
        ("os.getcwd()", no_name("os")),
        ("x = Thread()", no_name("Thread")),
    ],
)
def test_ordinary_answers_have_none(source: str, outcome: Outcome) -> None:
    assert hint(source, outcome) is None


_OUTCOMES = [ok("1"), ok("0.30000000000000004"), no_syntax(), no_name("x"), refused("input")]


@given(st.text(max_size=300), st.sampled_from(_OUTCOMES))
def test_any_text_is_taken(source: str, outcome: Outcome) -> None:
    assert hint(source, outcome) != ""


@given(st.text(alphabet="0123456789.+-*/()=, ^%e", max_size=60), st.sampled_from(_OUTCOMES))
def test_any_arithmetic_is_taken(source: str, outcome: Outcome) -> None:
    assert hint(source, outcome) != ""
