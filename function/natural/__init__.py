"""What people type that is not Python: a side building, on which nothing leans.

It is a Reader of function.calculator, which app hands to the bot.
"""

import ast

from function.natural import algebra
from function.natural.hints import Case, hint
from function.natural.reader import Expression, abilities, shown
from function.natural.reader import read as readings_of
from function.natural.typography import normalise, plain, unwrap
from function.program import Program, is_expression
from sandbox import Outcome, Policy, parse

__all__ = ["hint", "others", "read", "reread", "shown"]

LINES_READ = 20  # of a text that is no Python; each is read for itself


def read(text: str, policy: Policy) -> Program | None:
    """The one program that a text that is no Python stands for, all of it or line by line."""
    lines = [line.strip() for line in unwrap(text).split("\n") if line.strip()]
    if 2 <= len(lines) <= LINES_READ and (found := _line_by_line(text, lines, policy)):
        return found
    able = abilities(policy)
    reading = readings_of(text, able)
    if len(reading.expressions) == 1:
        return _program(text, reading.expressions[0])
    if "algebra" in able and not reading.expressions and (source := algebra.written(plain(text))):
        return Program(text, source, parse(source))
    return None if reading.expressions or reading.refusal else _typeset(text)


def reread(program: Program, outcome: Outcome, policy: Policy) -> Program | None:
    """What else a program stands for that gave no value, if that can be told."""
    if outcome.kind not in ("error", "ok") or outcome.output not in ("", "[]\n"):
        return None
    found = () if outcome.output else others(program, outcome, policy)
    if len(found) == 1:
        return found[0]
    is_algebra = not found and "algebra" in abilities(policy)
    if is_algebra and (source := algebra.rewritten(program.source, outcome)):
        return Program(program.typed, source, parse(source))
    is_unknown = outcome.error.startswith("NameError") and not found
    return _typeset(program.typed) if is_unknown else None


def others(program: Program, outcome: Outcome, policy: Policy) -> tuple[Program, ...]:
    """What else a program may stand for that Python ran: 2**10 for `2^10`."""
    case = Case(program, outcome, policy)
    return tuple(_program(program.typed, each) for each in case.others)


def _line_by_line(text: str, lines: list[str], policy: Policy) -> Program | None:
    """A program for several lines, each an expression or read as a calculation."""
    sources: list[str] = []
    for line in lines:
        tree = parse(line)
        program = Program(line, line, tree) if isinstance(tree, ast.Module) else read(line, policy)
        if not program or program.unit or not is_expression(program):
            return None
        sources.append(program.source)
    source = "\n".join(sources)
    return Program(text, source, parse(source), calculation=source)


def _program(typed: str, read_as: Expression) -> Program:
    tree = parse(read_as.program)
    return Program(typed, read_as.program, tree, read_as.text, read_as.unit)


def _typeset(text: str) -> Program | None:
    source = normalise(text)
    tree = parse(source) if source else None
    return Program(text, source, tree) if source and isinstance(tree, ast.Module) else None
