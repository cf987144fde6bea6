"""Algebra and plots in words: read where the policy has them, through the real sandbox."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function import natural
from function.answers.replies import reply
from function.calculator import Answer, calculate, read_program
from function.natural.algebra import written
from function.natural.reader import abilities, read
from function.parts import text_of
from sandbox import Policy, Sandbox, load_policy
from tools.serve import ROOT

ABLE = abilities(load_policy(ROOT / "sandbox/policies/maths.yaml"))


def test_the_policy_tells_what_a_program_is_able_to_do(policy: Policy) -> None:
    assert frozenset({"algebra", "draw"}) == ABLE
    assert abilities(policy) == frozenset()


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("solve x^2-2=0", "solve(x**2-2, x)"),
        ("solve x^3 = 8", "solve(x**3-8, x)"),
        ("2x + 3 = 7", "4/2"),
        ("x^2 + 2x + 1 = 0", "solve(x**2+2*x+1, x)"),
        ("2x(x+4) = 0", "solve(2*x*(x+4), x)"),
        ("solve 2y + 3 > 7", "solve(2*y+3 > 7, y)"),
        ("roots of x^2-3", "solve(x**2-3, x)"),
        ("sin x = 1/2", "solve(sin(x)-S(1)/2, x)"),
        ("реши уравнение х² = 9", "solve(x**2-9, x)"),
        ("what is the derivative of x^3 + 2x?", "diff(x**3+2*x, x)"),
        ("second derivative of x sin x", "diff(x*sin(x), x, 2)"),
        ("d/dx e^x", "diff(E**x, x)"),
        ("integrate sin(x)", "integrate(sin(x), x)"),
        ("∫ x^2 dx", "integrate(x**2, x)"),
        ("integral of e^(-x^2) from -infinity to infinity", "integrate(E**-x**2, (x, -oo, oo))"),
        ("интеграл x^2 от 0 до 1", "integrate(x**2, (x, 0, 1))"),
        ("limit of sin(x)/x as x -> 0", "limit(sin(x)/x, x, 0)"),
        ("limit sin(x)/x as x->0", "limit(sin(x)/x, x, 0)"),
        ("lim x→0 sin(x)/x", "limit(sin(x)/x, x, 0)"),
        ("taylor series of cos(x)", "series(cos(x), x)"),
        ("taylor series of e^x around 1", "series(E**x, x, 1)"),
        ("plot sin(x) and cos(x)", "plot(sin(x), cos(x))"),
        ("plot x^2, x^3 from 0 to 1", "plot(x**2, x**3, (x, 0, 1))"),
        ("factor x^2-1", "factor(x**2-1)"),
        ("factor 360", "factorint(360)"),
        ("expand (x+1)^3", "expand((x+1)**3)"),
        ("plot sin(x)", "plot(sin(x))"),
        ("graph y = x^2 from -2 to 2", "plot(x**2, (x, -2, 2))"),
        ("(x+1)^2", "(x+1)**2"),
        ("3x+2 where x=4", "3*4+2"),
        ("15% of 80", "15/100*80"),
        ("sin 30", "math.sin(math.radians(30))"),
        ("3 x 4", "3*4"),
    ],
)
def test_algebra_is_read_in_one_way(text: str, program: str) -> None:
    assert [each.program for each in read(text, ABLE).expressions] == [program]


@pytest.mark.parametrize(
    "text",
    ["x = 5", "x = 2^3", "x + y = 3", "derivative of 5", "derivative of sin(30)", "x", "plot"],
)
def test_what_says_nothing_or_too_much_is_not_read(text: str) -> None:
    assert read(text, ABLE).expressions == ()


@pytest.mark.parametrize("text", ["derivative of x^3", "(x+1)^2", "solve x^3 = 8", "factor 360"])
def test_without_the_libraries_it_is_refused(text: str) -> None:
    assert read(text).expressions == ()


@pytest.mark.parametrize(
    "text",
    ["1e5 x", "0x1f x", "2 3", "2 apples", "print(1) print(2)", "x = 3 if", "x + y = 3", "2 + 2"],
)
def test_what_is_no_algebra_is_not_written_as_python(text: str) -> None:
    assert written(text) == ""


def test_a_deep_program_is_left_as_it_is() -> None:
    deep = f"solve({'1+' * 450}x = 1)"
    assert written(deep) == ""


PIECES = [*"1x y2a -,()+^=!.°√|", "sin", "math.pi", "math.1", "derivative of", "integrate", "dx"]
PIECES += ["from", "to", "solve", "factor", "plot", "limit of", "as x -> ", "log", "where", "km"]


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_a_reading_is_an_expression_whatever_was_typed(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        for each in read(text, ABLE).expressions:
            ast.parse(each.text, mode="eval")
        ast.parse(written(text))


def told(text: str, maths: Sandbox) -> tuple[Answer, str]:
    program = read_program(text, natural, maths.policy)
    answer = calculate(program, maths, natural)
    return answer, text_of(reply(answer, maths.policy).message)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("solve x^2-2=0", "[-sqrt(2), sqrt(2)]"),
        ("integrate sin(x)", "-cos(x) = integrate(sin(x), x)"),
        ("derivative of x^3", "3*x**2 = diff(x**3, x)"),
        ("x^2 + 2x + 1 = 0", "[-1] = "),
        ("expand (x+1)^2", "x**2 + 2*x + 1 = "),
        ("what is 15% of 80?", "12 = 15/100*80"),
        ("2+2\nx*x\nx + x", "4\nx**2\n2*x"),
        ("15% of 80\nsolve x^2-4=0\nderivative of x^3", "12\n[-2, 2]\n3*x**2"),
        ("solve x + y = 3, x - y = 1", "{x: 2, y: 1} = solve([Eq(x + y, 3), Eq(x - y, 1)])"),
        ("2x + y = 5\nx - y = 1", "{x: 2, y: 1} = "),
        ("diff(x^3)", "3*x**2 = diff(x**3)"),
        ("sqrt(x^2+1)", "sqrt(x**2 + 1) = sqrt(x**2+1)"),
        ("diff(2sin(3x), x)", "6*cos(3*x) = diff(2*sin(3*x), x)"),
        ("expand((x+1)(x-1), x)", "x**2 - 1 = expand((x+1)*(x-1), x)"),
        ("solve(2x + 3 = 7)", "[2] = "),
        ("solve(x**2 == 4, x)", "[-2, 2] = solve(Eq("),
        ("solve([x + y == 3, x - y == 1], dict=True)", "[{x: 2, y: 1}] = "),
        ("x = 3\n2x", "6"),
        ("determinant of [[1,2],[3,4]]", "-2 = Matrix([[1,2],[3,4]]).det()"),
        ("what is the inverse of [[2,0],[0,4]]", "⎡1/2   0 ⎤"),
        ("8/2(2+2)", "more than one way"),
        ("5()", "not callable"),
        ("x + y = 3", "Write it in Python"),
        ("x = 2^3\nx", "a power is written **: x = 2**3"),
    ],
)
def test_algebra_is_answered_or_told_in_python(text: str, said: str, maths: Sandbox) -> None:
    assert said in told(text, maths)[1]


@pytest.mark.parametrize(("text", "value"), [("gcd(48,180)", "12"), ("root(27,3)", "3")])
def test_a_comma_in_a_call_of_sympys_is_no_surprise(text: str, value: str, maths: Sandbox) -> None:
    assert told(text, maths)[1] == f"{value} = {text}"


@pytest.mark.parametrize("text", ["plot sin(x)", "plot x^2 from -2 to 2", "2+2\nplot sin(x)"])
def test_a_plot_in_words_is_a_picture(text: str, maths: Sandbox) -> None:
    answer, said = told(text, maths)
    assert len(answer.outcome.pictures) == 1
    assert "object" not in said


def test_a_call_that_failed_is_not_its_own_cure(maths: Sandbox) -> None:
    said = told("solve(x**x - x - 3)", maths)[1]
    assert "NotImplementedError" in said
    assert "solve(x" not in said
