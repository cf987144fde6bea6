"""A program that was sent, and what is done to its text before it runs."""

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

from sandbox import Policy, Unparsed, parse

LITERAL_CHARACTERS = 1000  # of an answer that is kept
TEXT_CHARACTERS = 200

_ANSWER = re.compile(r"\b[Aa]ns\b")
_NAMING = ("id", "attr", "name")  # fields of a tree's nodes
_LAST = re.compile(r"\b(?:_|[Aa]ns)\b")  # phones begin a line with a capital


class Program(NamedTuple):
    """What was typed, the program that it stands for, and its tree where it is one.

    A text that was read as a calculation has the `calculation` that is shown, and its value the
    `unit`; else both are "".
    With `echo_lines` each of several lines is an expression, whose value is printed.
    """

    typed: str
    source: str
    tree: ast.Module | Unparsed | None
    calculation: str = ""
    unit: str = ""
    echo_lines: bool = False


def has_algebra(policy: Policy) -> bool:
    """Whether programs find sympy's symbols and functions by name."""
    return "sympy" in policy.allowed_imports and bool(policy.prelude)


def can_draw(policy: Policy) -> bool:
    """Whether programs find `plt`, whose figures are shown."""
    return "plt" in policy.preloaded and policy.limits.picture_bytes > 0


def is_expression(program: Program) -> bool:
    """Whether a program is one line whose value is printed."""
    match program.tree.body if isinstance(program.tree, ast.Module) else ():
        case [ast.Expr(value=ast.Call(func=ast.Name(id="print")))]:
            return False
        case [ast.Expr(end_lineno=int() as line, end_col_offset=int() as stop)]:
            rest = program.source.split("\n")[line - 1].encode()[stop:]
            return "\n" not in program.source.strip() and b";" not in rest.partition(b"#")[0]
    return False


def line_by_line(program: Program) -> Program:
    """The same program, with `echo_lines` if it is such and does not print, ask or draw."""
    body = program.tree.body if isinstance(program.tree, ast.Module) else []
    if len(body) < 2:
        return program
    single = [one for one in body if isinstance(one, ast.Expr) and one.lineno == one.end_lineno]
    if len({one.lineno for one in single}) < len(body):
        return program
    if "\r" in program.source or uses(program.tree, "print", "input", "plt", "plot"):
        return program
    return program._replace(echo_lines=True)


def with_last_answer(program: Program, last_answer: Callable[[], str]) -> Program:
    """The same program, with the last answer in the place of `_` and `ans` where it binds neither.

    `last_answer` is asked only for a program that needs it.
    """
    if not isinstance(program.tree, ast.Module) or not _LAST.search(program.source):
        return program
    nodes = list(ast.walk(program.tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound: set[str | None] = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    for node in nodes:
        bound |= {getattr(node, field, None) for field in ("name", "arg", "asname", "rest")}
    loads = [name for name in names if _LAST.fullmatch(name.id) and name.id not in bound]
    value = literal(last_answer()) if loads else ""
    data = program.source.encode()
    starts = [0, *(end.end() for end in re.finditer(b"\r\n|\r|\n", data))]
    for name in sorted(loads, key=lambda name: (name.lineno, name.col_offset), reverse=True):
        at = starts[name.lineno - 1] + name.col_offset
        rest = data[at + len(name.id) :]
        if not value or data[at : at + len(name.id)] != name.id.encode():
            return program  # Python 3.11 does not know where names stand in an f-string
        needs_brackets = value[0] not in "0123456789'\"" or rest[:1] == b"."
        text = f"({value})" if needs_brackets else value
        data = data[:at] + text.encode() + rest
    source = data.decode()
    tree = parse(source)
    return program if isinstance(tree, Unparsed) else program._replace(source=source, tree=tree)


def words_with_last_answer(words: str, last_answer: Callable[[], str]) -> str:
    """The same for a text that is no Python: `10% of ans`, where that is a number; else ""."""
    value = literal(last_answer()) if _ANSWER.search(words) else ""
    return _ANSWER.sub(f"({value})" if value[0] == "-" else value, words) if value else ""


def literal(text: str) -> str:
    """A number or a short text as Python writes it, from what may be one; "" for anything else."""
    if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) < LITERAL_CHARACTERS:
        return text  # as most are; 1 us instead of 15
    try:
        value = ast.literal_eval(text) if len(text) <= LITERAL_CHARACTERS else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    if isinstance(value, int | float | complex) and not isinstance(value, bool):
        return repr(value)
    return repr(value) if isinstance(value, str) and len(value) <= TEXT_CHARACTERS else ""


def value_of(program: Program, output: str) -> str:
    """The value that a program printed last, as a literal; "" where that is none."""
    body = program.tree.body if isinstance(program.tree, ast.Module) else []
    match body[-1:]:
        case [ast.Expr(value=ast.Constant(value=str(text)))] if len(body) == 1:
            return literal(repr(text))
    last = output.strip().rpartition("\n")[2]
    return literal(last) if program.echo_lines or last == output.strip() else ""


def uses(tree: ast.Module | Unparsed | None, *names: str) -> bool:
    """Whether a program names one of these: a variable, an attribute, or what it imports."""
    nodes = ast.walk(tree) if isinstance(tree, ast.Module) else ()
    return any(getattr(node, field, None) in names for node in nodes for field in _NAMING)
