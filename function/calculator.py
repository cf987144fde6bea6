"""From the text of a program to an answer that is safe to show: normalise, check, run, redact."""

from dataclasses import replace
from typing import NamedTuple, Protocol

from function.parts import Parts
from function.program import Program, is_expression, line_by_line
from function.telegram.lengths import MESSAGE_UNITS
from function.telegram.sanitise import redact, sanitise
from sandbox import Outcome, Policy, Sandbox, Unparsed, Violation, parse

EXCERPT_WIDTH = 60  # characters of a wrong line that are shown, the wrong place among them
SHOWN_HEAD = MESSAGE_UNITS * 2 // 3  # of a long output, what a message can show of its beginning
SHOWN_TAIL = MESSAGE_UNITS - SHOWN_HEAD
OTHERS_SHOWN = 2


class Reader(Protocol):
    """Understands what people type that is not Python. Nothing here depends on it.

    The policy tells what a program may use: with sympy in it, `derivative of x^3` is a program.
    """

    def read(self, text: str, policy: Policy) -> Program | None:
        """The one program that a text that is no Python stands for."""

    def reread(self, program: Program, outcome: Outcome, policy: Policy) -> Program | None:
        """What else a program stands for that gave no value, if that can be told."""

    def others(self, program: Program, outcome: Outcome, policy: Policy) -> tuple[Program, ...]:
        """What else a program may stand for."""

    def shown(self, program: Program, output: str) -> str:
        """The value of a program that was read as a calculation."""

    def hint(self, program: Program, outcome: Outcome, policy: Policy) -> Parts:
        """A line of help for a program and its outcome; no parts where none is due."""


class Answer(NamedTuple):
    """What came of a program.

    `outcome` is as the sandbox gave it. All other texts are sanitised, redacted, and "" for none:
    they are what a chat may see. Of a long output, `output` is the beginning and `end` the end,
    with `omitted` characters between; `document` is all of it, where that was asked for.
    `expression` is the program where its value is what was printed, so that `4 = 2+2` makes sense;
    `excerpt` is the line of a syntax error with a caret below. `others` are values of the text read
    otherwise, and how: 1024 and 2**10 for `2^10`.
    """

    outcome: Outcome
    output: str = ""
    end: str = ""
    omitted: int = 0
    document: str = ""
    error: str = ""
    warning: str = ""
    violations: tuple[Violation, ...] = ()
    expression: str = ""
    excerpt: str = ""
    hint: Parts = ()
    others: tuple[tuple[str, str], ...] = ()


def read_program(typed: str, reader: Reader | None, policy: Policy) -> Program:
    """The program as it stands, or, where it does not parse, as `reader` reads it.

    Takes any text. What is longer than the policy lets run is not looked at.
    """
    tree = parse(typed) if len(typed) <= policy.limits.source_bytes else None
    found = reader.read(typed, policy) if isinstance(tree, Unparsed) and reader else None
    return line_by_line(found or Program(typed, typed, tree))


def calculate(
    program: Program,
    sandbox: Sandbox,
    reader: Reader | None = None,
    *,
    token: str = "",  # nosec B107: none
    inline: bool = False,
    documents: bool = False,
    stdin: str = "",
) -> Answer:
    """Run a program and say what came of it; where it gave no value, what it was meant to be.

    `token` is redacted along with all that is shaped like one; `inline` binds nf and fact, and
    works out what else the text may mean; `documents` asks for the whole of a long output. Never
    raises.
    """
    policy, secrets = sandbox.policy, [token] if token else []

    def run(program: Program) -> Outcome:
        return sandbox.run(
            program.source,
            program.tree,
            helpers=inline,
            stdin=stdin,
            echo_lines=program.echo_lines,
        )

    def shown(text: str) -> str:
        return redact(sanitise(text), secrets) if text else ""

    outcome = run(program)
    if reader and (meant := reader.reread(program, outcome, policy)):
        meant = line_by_line(meant)
        again = run(meant)
        program, outcome = (meant, again) if again.kind == "ok" else (program, outcome)
    output = outcome.output
    end, omitted = "", len(output) - MESSAGE_UNITS
    if omitted > 0:  # 64 KiB of odd characters cost 30 ms to sanitise, what is shown of them 2
        output, end = output[:SHOWN_HEAD], shown(output[-SHOWN_TAIL:])
    if reader and program.calculation and outcome.kind == "ok":
        output = reader.shown(program, output)
    others = reader.others(program, outcome, policy) if reader and inline else ()
    hint = reader.hint(program, outcome, policy) if reader else ()
    return Answer(
        outcome,
        output=shown(output),
        end=end,
        omitted=max(omitted, 0),
        document=shown(outcome.output) if documents and len(outcome.output) > SHOWN_TAIL else "",
        error=shown(outcome.error),
        warning=shown(outcome.warning),
        violations=tuple(
            replace(each, message=shown(each.message), value=shown(each.value))
            for each in outcome.violations
        ),
        expression=shown(_expression(program, outcome)),
        excerpt=shown(_excerpt(program.source, outcome)) if outcome.kind == "syntax_error" else "",
        hint=tuple(part._replace(text=shown(part.text)) if part.kind else part for part in hint),
        others=tuple(
            (shown(reader.shown(other, each.output)), shown(other.calculation))
            for other in others[:OTHERS_SHOWN]
            if reader and (each := run(other)).kind == "ok"
        ),
    )


def _expression(program: Program, outcome: Outcome) -> str:
    """The program where its value is what it printed, no more and no less; else ""."""
    if program.echo_lines or outcome.kind != "ok" or "input(" in program.source:
        return ""
    return program.calculation or (program.source if is_expression(program) else "")


def _excerpt(source: str, outcome: Outcome) -> str:
    """The line of the first violation, cut around its column, with a caret beneath."""
    lines = source.split("\n")
    first = outcome.violations[0] if outcome.violations else None
    if not first or not 1 <= first.line <= len(lines):
        return ""
    line = lines[first.line - 1]
    column = len(line[: first.column - 1].expandtabs())
    start = max(0, column - EXCERPT_WIDTH * 2 // 3)
    part = line.expandtabs()[start : start + EXCERPT_WIDTH]
    return f"{part}\n{' ' * (column - start)}^" if part.strip() else ""
