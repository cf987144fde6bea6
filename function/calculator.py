"""From the text of a program to an answer that is safe to show: normalise, check, run, redact."""

import ast
from dataclasses import dataclass, replace
from functools import partial

from function.answers.visible import redact, visible
from function.natural.hints import hint, normalise
from function.parts import Parts
from sandbox import Outcome, Sandbox, Violation

EXCERPT_WIDTH = 60  # characters of a wrong line that are shown, the wrong place among them


@dataclass(frozen=True)
class Answer:
    """What came of a program.

    `outcome` is as the sandbox gave it. All other texts are visible, redacted, and "" for none:
    they are what a chat may see. `expression` is the program where it is one expression in one
    line, so that `4 = 2+2` makes sense; `excerpt` is the line of a syntax error with a caret below.
    """

    outcome: Outcome
    output: str = ""
    error: str = ""
    violations: tuple[Violation, ...] = ()
    expression: str = ""
    excerpt: str = ""
    hint: Parts = ()


def calculate(source: str, sandbox: Sandbox, *, token: str = "", helpers: bool = False) -> Answer:
    """Run a program as it stands, or, where it does not parse, without what phones do to text.

    Takes any text; `token` is redacted along with all that is shaped like one; `helpers` binds
    nf and fact. Never raises.
    """
    typed, outcome = source, sandbox.run(source, helpers=helpers)
    if outcome.kind == "syntax_error" and (plain := normalise(typed)):
        source, outcome = plain, sandbox.run(plain, helpers=helpers)
    shown = partial(_shown, secrets=[token] if token else [])
    return Answer(
        outcome,
        output=shown(outcome.output),
        error=shown(outcome.error),
        violations=tuple(
            replace(each, message=shown(each.message), value=shown(each.value))
            for each in outcome.violations
        ),
        expression=shown(source) if _is_expression(source) else "",
        excerpt=shown(_excerpt(source, outcome)) if outcome.kind == "syntax_error" else "",
        hint=tuple(
            part._replace(text=shown(part.text)) if part.kind else part
            for part in hint(typed, outcome, source)
        ),
    )


def _shown(text: str, secrets: list[str]) -> str:
    return redact(visible(text), secrets)


def _is_expression(source: str) -> bool:
    """Whether a program is one line whose value is what was printed."""
    if "\n" in source.strip():
        return False
    try:
        value = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = value.func if isinstance(value, ast.Call) else None
    return not (isinstance(called, ast.Name) and called.id == "print")


def _excerpt(source: str, outcome: Outcome) -> str:
    """The line of the first violation, cut around its column, with a caret beneath."""
    lines = source.split("\n")
    place = outcome.violations[0] if outcome.violations else None
    if place is None or not 1 <= place.line <= len(lines):
        return ""
    line = lines[place.line - 1]
    column = len(line[: place.column - 1].expandtabs())
    start = max(0, column - EXCERPT_WIDTH * 2 // 3)
    part = line.expandtabs()[start : start + EXCERPT_WIDTH]
    return f"{part}\n{' ' * (column - start)}^" if part.strip() else ""
