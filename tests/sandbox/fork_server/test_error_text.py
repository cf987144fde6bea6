"""An error is worded as Python's own console words it, whatever a program made of it."""

import subprocess
import sys

import pytest

from sandbox.fork_server.error_text import MOST_LINES, describe
from sandbox.sandbox import Sandbox

U = "u = chr(95) * 2\n"

# Each last line is what the console of the running Python says.
AS_THE_CONSOLE = [
    "prnt(2)",
    "def f():\n    value = 1\n    return valeu\nf()",
    "class A:\n    size = 1\nA().sise",
    "import math\nmath.sqr(2)",
    "import json\njson.loads('{')",
    "import re\nre.compile('(')",
    "import decimal\ndecimal.Decimal(1) / 0",
    "xyzzy",
    "int('x')",
    "{}['a']",
    "raise ValueError",
    "def f():\n    class E(Exception): pass\n    raise E('x')\nf()",
    "'a' + 1",
    "[1][9]",
]


@pytest.mark.parametrize("source", AS_THE_CONSOLE)
def test_an_error_is_the_consoles_last_line(sandbox: Sandbox, source: str) -> None:
    command = [sys.executable, "-I", "-c", source]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    error = sandbox.run(source).error.partition(" (line ")[0]
    assert error == said.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (
            "try: 1/0\nexcept ZeroDivisionError as e: raise ValueError('x') from e",
            "ValueError: x (line 2)\ncaused by ZeroDivisionError: division by zero (line 1)",
        ),
        (
            "try: 1/0\nexcept ZeroDivisionError: [][1]",
            "IndexError: list index out of range (line 2)\n"
            "while handling ZeroDivisionError: division by zero (line 1)",
        ),
        ("try: 1/0\nexcept ZeroDivisionError: raise ValueError from None", "ValueError (line 2)"),
        (
            "raise ExceptionGroup('two', [ValueError('a'), KeyError(1)])",
            "ExceptionGroup: two (2 sub-exceptions)\n  - ValueError: a\n  - KeyError: 1",
        ),
        ("e = ValueError('x')\ne.add_note('a\\nb')\nraise e", "ValueError: x (line 3)\na b"),
        ("from math import sqr", "ImportError: cannot import name 'sqr' from 'math'"),
    ],
)
def test_what_an_error_came_from_follows_in_lines(
    sandbox: Sandbox, source: str, error: str
) -> None:
    assert sandbox.run(source).error == error


@pytest.mark.parametrize(
    "members",
    [
        "{u + 'str' + u: lambda s: 1/0}",
        "{u + 'str' + u: lambda s: 1}",
        "{u + 'notes' + u: 3}",
        "{u + 'cause' + u: property(lambda s: 1/0)}",
        "{u + 'class' + u: property(lambda s: SyntaxError)}",
        "{u + 'traceback' + u: 3}",
        "{u + 'module' + u: 3, u + 'qualname' + u: 'é' * 9}",
    ],
)
@pytest.mark.parametrize("metaclass", ["type", "type('M', (type,), {n: property(lambda c: 1/0)})"])
def test_an_error_of_any_kind_is_an_error(sandbox: Sandbox, members: str, metaclass: str) -> None:
    named = U + "n = u + 'name' + u\n"
    outcome = sandbox.run(f"{named}raise ({metaclass})('E', (Exception,), {members})('x')")
    assert outcome.kind == "error"
    assert "(" in outcome.error


def test_a_long_chain_and_a_ring_end() -> None:
    first = error = ValueError("x")
    for _ in range(50):
        error.__context__ = error = ValueError("y")
    error.__context__ = first
    assert describe(first, has_lines=True).count("\n") == MOST_LINES - 1
    ring = ValueError("z")
    ring.__context__ = ValueError("w")
    ring.__context__.__context__ = ring
    assert describe(ring, has_lines=True) == "ValueError: z\nwhile handling ValueError: w"


@pytest.mark.parametrize(
    ("source", "warning"),
    [
        ("x = 1\nx is 1", "(line 2)"),
        ("assert (1, 'x')", "SyntaxWarning: assertion is always true, perhaps remove parentheses?"),
        ("1 + 1", ""),
    ],
)
def test_what_python_warns_of_stands_beside_the_answer(
    sandbox: Sandbox, source: str, warning: str
) -> None:
    outcome = sandbox.run(source)
    assert (outcome.kind, outcome.error) == ("ok", "")
    assert outcome.warning.endswith(warning)
    assert bool(outcome.warning) == bool(warning)


def test_an_empty_text_is_told_from_no_value(sandbox: Sandbox) -> None:
    assert sandbox.run("''").output == "''\n"
    assert sandbox.run("print('')").output == "\n"
    assert sandbox.run("' '").output == " \n"
