"""A program sent in two pieces must mean what it meant in one."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.check.source import PROGRAM_NAME, parse
from sandbox.fork_server import protocol
from sandbox.fork_server.program import encode, split
from sandbox.sandbox import Sandbox

CORPUS = Path(__file__).resolve().parent.parent.parent / "corpus"
LITERALS = [
    "1",
    "'é'",
    "(2)",
    "f'{1}'",
    '"""\n"""',
    "[1,\n 2]",
    "1 + \\\n 2",
    "*a, b",
    "(a), *b",
    "(yield)",
    "-x",
]
OTHERS = ["x = 1", "if x: y", "def f():\n  return 1", "pass", "# note", "", "'doc'", "a = '\\\n'"]


def meaning(tree: ast.AST) -> list[object]:
    """Return what a tree says and on which lines; a program may nest too deeply for ast.dump."""
    return [
        (
            type(node).__name__,
            getattr(node, "lineno", None),
            getattr(node, "end_lineno", None),
            [
                repr(value)
                for _, value in ast.iter_fields(node)
                if not isinstance(value, ast.AST | list)
            ],
            [len(value) for _, value in ast.iter_fields(node) if isinstance(value, list)],
        )
        for node in ast.walk(tree)
    ]


def assert_means_the_same(source: str) -> None:
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    statements, expression = split(source, tree)
    first = ast.parse(statements, PROGRAM_NAME)
    if expression:
        last = tree.body.pop()
        assert isinstance(last, ast.Expr)
        value = ast.parse(expression, PROGRAM_NAME, mode="eval").body
        assert meaning(value) == meaning(last.value), source
    assert meaning(first) == meaning(tree), source


def corpus_sources() -> list[str]:
    return [
        json.loads(line)["source"]
        for name in ("benign.jsonl", "attacks.jsonl")
        for line in (CORPUS / name).read_text("utf-8").splitlines()
    ]


def test_every_program_of_the_corpus_means_the_same_in_two_pieces() -> None:
    parsed = [source for source in corpus_sources() if isinstance(parse(source), ast.Module)]
    assert len(parsed) > 500
    for source in parsed:
        assert_means_the_same(source)


@given(
    st.lists(st.sampled_from(LITERALS + OTHERS), min_size=1, max_size=5),
    st.lists(st.sampled_from(["\n", "\r\n", "; ", "\n\n", " # é\n", "\n\\\n", " ;\n"]), min_size=6),
)
def test_any_arrangement_of_statements_means_the_same_in_two_pieces(
    pieces: list[str], ends: list[str]
) -> None:
    source = "".join(piece + end for piece, end in zip(pieces, ends, strict=False))
    if isinstance(parse(source), ast.Module):
        assert_means_the_same(source)


@pytest.mark.parametrize(
    ("source", "pieces"),
    [
        ("2+2", ("", "2+2")),
        ("x = 1; x", ("x = 1", "x")),
        ("# one\n\n(2,\n3) # end", ("", "\n\n(2,\n3)")),
        ("é = 1\r\né", ("é = 1", "\né")),
        ("*a, b", ("", "(*a, b)")),
        ("x = 1", ("x = 1", "")),
        ("yield 1", ("yield 1", "")),
        ("1 +", ("1 +", "")),
        ("", ("", "")),
        ("\ud800", ("\ud800", "")),
    ],
)
def test_the_last_expression_stands_apart_with_its_line(
    source: str, pieces: tuple[str, str]
) -> None:
    assert split(source, parse(source)) == pieces


def test_the_value_of_each_line_can_be_printed_in_its_line() -> None:
    text = "1, 2  # two\n\nx"
    _, statements, expression, _ = protocol.unpack_program(encode(text, echo_lines=True))
    assert (statements, expression) == ("", "(1, 2)\0\n\n(x)")


def test_a_message_holds_flags_and_both_pieces() -> None:
    assert protocol.unpack_program(encode("x = 'é'\nx", helpers=True, stdin="ü\n")) == (
        protocol.HELPERS | protocol.SEVERAL_LINES,
        "x = 'é'",
        "\nx",
        "ü\n",
    )


@pytest.mark.parametrize(
    ("source", "output", "error"),
    [
        ("x = 3\n\nx / 0", "", "ZeroDivisionError: division by zero (line 3)"),
        ("print(1); 2 / 0", "1\n", "ZeroDivisionError: division by zero"),
        ("1 / 0\n2", "", "ZeroDivisionError: division by zero (line 1)"),
        ("print(1)\n(\n  1 /\n  0)", "1\n", "ZeroDivisionError: division by zero (line 3)"),
        ("*'ab', 1", "('a', 'b', 1)\n", ""),
        ("(yield)", "", "SyntaxError: 'yield' outside function"),
        ("print(1)\nreturn 2", "", "SyntaxError: 'return' outside function (line 2)"),
        ("(" * 180 + "7" + ")" * 180, "7\n", ""),
    ],
)
def test_values_errors_and_lines_are_those_of_the_whole(
    sandbox: Sandbox, source: str, output: str, error: str
) -> None:
    outcome = sandbox.run(source)
    assert (outcome.output, outcome.error) == (output, error)
