"""What a guest is sent: a program's statements and its last expression apart, in one message.

The function has parsed the program already; a guest that only compiles text needs an eighth less
processor time than one that makes a syntax tree of it.
"""

import ast
from typing import TypedDict, Unpack

from sandbox.check.source import Lines, Unparsed, parse
from sandbox.fork_server import protocol


class Options(TypedDict, total=False):
    """How a program is run.

    `stdin` holds the lines that `input` reads; `echo_lines` is for a program whose lines are all
    expressions, and prints the value of each, not of the last alone; `helpers` binds nf and fact;
    `unchecked` leaves out the checker, the import guard and the reduced builtins, so that the
    operating system's layers are alone.
    """

    stdin: str
    echo_lines: bool
    helpers: bool
    unchecked: bool


def encode(
    source: str, tree: ast.Module | Unparsed | None = None, **options: Unpack[Options]
) -> bytes:
    """Return what is written to a guest's descriptor 0, from any text.

    `tree` is what `parse` has made of it, if that is known.
    """
    tree = tree or parse(source)
    flags = protocol.SEVERAL_LINES if "\n" in source.strip() else 0
    if options.get("helpers"):
        flags |= protocol.HELPERS
    if options.get("unchecked"):
        flags |= protocol.UNCHECKED
    if options.get("echo_lines"):
        flags |= protocol.EVERY_LINE
        pieces = "", _expressions(source, tree)
    else:
        pieces = split(source, tree)
    return protocol.pack_program(flags, *pieces, options.get("stdin", ""))


def split(source: str, tree: ast.Module | Unparsed) -> tuple[str, str]:
    """Return the text to execute and the text to evaluate after it; "" where there is none.

    Each line keeps its number. A program that does not parse is all statements.
    """
    body = tree.body if isinstance(tree, ast.Module) else []
    last = body[-1] if body else None
    # By themselves these are errors, in words that only a statement gets.
    errors = ast.Yield | ast.YieldFrom | ast.Starred
    if not isinstance(last, ast.Expr) or isinstance(last.value, errors):
        return source, ""
    lines = Lines(source)
    expression = source[lines.index_of_node(last.lineno, last.col_offset) : _end(lines, last)]
    if isinstance(last.value, ast.Tuple) and any(
        isinstance(element, ast.Starred) for element in last.value.elts
    ):
        expression = f"({expression})"  # `*a, b` without them is a statement's right
    expression = "\n" * (last.lineno - 1) + expression
    return source[: _end(lines, body[-2])] if len(body) > 1 else "", expression


def _expressions(source: str, tree: ast.Module | Unparsed) -> str:
    """Return the expressions of a program that has nothing else, each with the lines before it."""
    return "\0".join(
        "\n" * (one.lineno - 1) + f"({ast.get_source_segment(source, one)})"
        for one in (tree.body if isinstance(tree, ast.Module) else [])
    )


def _end(lines: Lines, node: ast.stmt) -> int:
    return lines.index_of_node(node.end_lineno or 1, node.end_col_offset or 0)
