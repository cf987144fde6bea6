"""What is done to a program's text before it runs: last answers put in, lines told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function import natural
from function.calculator import read_program
from function.program import Program, line_by_line, literal, value_of, with_last_answer
from sandbox import Policy, parse
from sandbox.fork_server.program import encode


def program(text: str) -> Program:
    return Program(text, text, parse(text))


@pytest.mark.parametrize(
    ("text", "last", "source"),
    [
        ("_ * 2", "21", "21 * 2"),
        ("ans+_", "1.5", "1.5+1.5"),
        ("Ans + 1", "7", "7 + 1"),
        ("_ ** 2", "-3", "(-3) ** 2"),
        ("_.real", "5", "(5).real"),
        ("_ + 1", "1j", "1j + 1"),
        ("len(_)", "'aä'", "len('aä')"),
        ("'ä', _", "7", "'ä', 7"),
        ("x = _\nx + ans", "7", "x = 7\nx + 7"),
        ("f'{x}' if _ else 2", "7", "f'{x}' if 7 else 2"),
        # its own names, or none
        ("for _ in range(3): print(_)", "7", ""),
        ("ans = 2\nans", "7", ""),
        ("def f(_): return _", "7", ""),
        ("lambda _: _", "7", ""),
        ("import math as ans\nans", "7", ""),
        ("match 1:\n    case ans: print(ans)", "7", ""),
        ("x._ + x.ans", "7", ""),
        ("'_ and ans'", "7", ""),
        ("_ * 2", "", ""),
        # nothing that is kept is believed
        ("_ * 2", "open('/etc/passwd')", ""),
        ("_ * 2", "[1]", ""),
        ("_ * 2", "True", ""),
        ("_ * 2", "1" * 5000, ""),
        ("2 +", "7", ""),
    ],
)
def test_the_last_answer_stands_for_what_the_program_does_not_bind(
    text: str, last: str, source: str
) -> None:
    assert with_last_answer(program(text), lambda: last).source == (source or text)


def test_the_last_answer_is_looked_up_only_where_it_is_needed() -> None:
    def fail() -> str:
        raise AssertionError

    assert with_last_answer(program("2+2"), fail).source == "2+2"
    assert with_last_answer(program("[0 for _ in x]"), fail).source == "[0 for _ in x]"


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("2+2\n3+3", True),
        ("1, 2\n\nf(3)  # three", True),
        ("2+2", False),
        ("2+2; 3+3", False),
        ("x = 2\nx", False),
        ("print(1)\nprint(2)", False),
        ("input()\n2", False),
        ("(1 +\n2)\n3", False),
        ("for x in y: x\n3", False),
        ("2+2\n3+", False),
    ],
)
def test_lines_that_are_expressions_are_told_apart(text: str, is_told: bool) -> None:
    assert line_by_line(program(text)).echo_lines is is_told


@pytest.mark.parametrize(
    ("text", "output", "value"),
    [
        ("2+2", "4\n", "4"),
        ("1/3", "0.3333333333333333\n", "0.3333333333333333"),
        ("'a b'", "a b\n", "'a b'"),
        ("x = 5\nx * 2", "10\n", "10"),
        ("[1, 2]", "[1, 2]\n", ""),
        ("2 > 1", "True\n", ""),
        ("f()", "1\n2\n", ""),
        ("f()", "text\n", ""),
    ],
)
def test_the_value_to_go_on_with_is_a_number_or_a_short_text(
    text: str, output: str, value: str
) -> None:
    assert value_of(program(text), output) == value


def test_the_last_of_several_lines_is_the_value_to_go_on_with() -> None:
    assert value_of(line_by_line(program("2+2\n3+3")), "4\n6\n") == "6"


@given(st.text(st.characters() | st.sampled_from("_ans+'\"\n\r(){}f:.5"), max_size=40))
def test_any_text_is_taken(policy: Policy, text: str) -> None:
    read = read_program(text, natural, policy)
    filled = with_last_answer(read, lambda: "5")
    assert isinstance(encode(filled.source, filled.tree, echo_lines=filled.echo_lines), bytes)


@pytest.mark.parametrize("text", ["", "007", "x", "1 +", "b'a'", "'" + "a" * 300 + "'", "(" * 900])
def test_anything_else_is_no_literal(text: str) -> None:
    assert literal(text) == ""
