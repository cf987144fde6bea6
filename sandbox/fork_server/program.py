"""What a guest is sent: a program's statements and its last expression apart, in one message.

The function has parsed the program already; a guest that only compiles text needs an eighth less
processor time than one that makes a syntax tree of it.
"""

import ast

from sandbox.check.source import Lines, Unparsed, parse
from sandbox.fork_server import protocol


def encode(
    source: str,
    tree: ast.Module | Unparsed | None = None,
    *,
    helpers: bool = False,
    unchecked: bool = False,
    echo_lines: bool = False,
    stdin: str = "",
) -> bytes:
    """Return what is written to a guest's descriptor 0, from any text.

    `tree` is what `parse` has made of it, if that is known; `stdin` is what `input` reads. With
    `echo_lines` the value of every statement is printed, which must be an expression in one line.
    """
    flags = protocol.HELPERS * helpers | protocol.UNCHECKED * unchecked
    flags |= protocol.SEVERAL_LINES * ("\n" in source.strip())
    tree = tree or parse(source)
    flags |= protocol.EVERY_LINE * echo_lines
    pieces = ("", _expressions(source, tree)) if echo_lines else split(source, tree)
    return protocol.pack_program(flags, *pieces, stdin)


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
