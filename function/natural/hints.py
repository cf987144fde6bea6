"""One line of help for answers that surprise, and for what is not Python at all.

Whether a hint is due is told by the outcome, the program's tree or how the text was read. A hint
changes neither what is run nor the answer: it stands beside it. The sentences are in hints.toml.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from function.natural.lexicon import tokens
from function.natural.other_languages import in_code, in_python
from function.natural.reader import LONGEST, Expression, Reading, abilities, read, read_lines
from function.natural.terms import exact
from function.natural.typography import parses
from function.parts import Part, Parts, code, parts
from function.program import Program
from sandbox import Outcome, Policy, parse

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_SENTENCES: dict[str, str] = _TEXTS["sentences"]
_PATTERNS = [(re.compile(row["found"]), row["said"]) for row in _TEXTS["patterns"]]
_MISLEADING = re.compile(
    r"\^|\d,\d|\d\s*%|\d[/.-]\d{1,2}[/.-]\d{4}|\d{4}-\d\d?-\d|\A\s*[^\W\d]+\s*:|math\.\w+\(\d"
)
_OF_BITS = re.compile(r"[&|]|<<|>>|\b0[xXbBoO]|\b(?:bin|hex)\(")
_POWER = r"[\w.)\]]\s*\^\s*(?![01]\b(?!\.))\.?\d"  # not of 0 or 1, which flip a bit


@dataclass(frozen=True)
class Case:
    """What was typed and run, what became of it, and under which policy."""

    program: Program
    outcome: Outcome
    policy: Policy

    @cached_property
    def tree(self) -> ast.Module | None:
        """What was run, where it is short enough to have been typed by hand."""
        is_short = len(self.program.source) <= LONGEST * 10
        is_run = self.outcome.kind in ("ok", "error")
        tree = self.program.tree
        return tree if is_short and is_run and isinstance(tree, ast.Module) else None

    @cached_property
    def missing(self) -> str:
        """The name that is not there."""
        match = re.match(r"NameError: name '(\w+)' is not defined", self.outcome.error)
        return match[1] if match and self.outcome.kind == "error" else ""

    @property
    def is_unknown(self) -> bool:
        """Whether it is no Python at all, or has a name that is not there."""
        return self.outcome.kind == "syntax_error" or bool(self.missing)

    @cached_property
    def reading(self) -> Reading:
        """The text as a calculation, where it failed as a program, or looks like no program."""
        kind, typed, lines = self.outcome.kind, self.program.typed, self.program.echo_lines
        is_odd = kind == "ok" and len(typed) <= LONGEST and _MISLEADING.search(typed)
        is_read = is_odd or kind in ("syntax_error", "error")
        if not is_read or (self.program.calculation and not lines):
            return Reading()
        return (read_lines if lines else read)(typed, abilities(self.policy))

    @cached_property
    def others(self) -> tuple[Expression, ...]:
        """What the text may mean, but for what Python makes of it.

        Nothing where Python gave a value that is one of these.
        """
        expressions = self.reading.expressions
        typed, lines = self.program.typed, self.program.echo_lines
        tree = self.program.tree if lines else parse(typed) if expressions else None
        python = tree if isinstance(tree, ast.Module) else ast.Module([], [])
        is_ok = self.outcome.kind == "ok"
        others = [each for each in expressions if not _is_same(ast.parse(each.program), python)]
        # The comma of a call that works separates: a library's own `root(27,3)` is no surprise.
        is_call = re.fullmatch(r"\w+\([^()]*,[^()]*\)", typed.strip())
        is_given = is_call and not all(each.notes for each in others)
        is_one = is_ok and (is_given or len(others) < len(expressions))
        return () if is_one else tuple(others)


def hint(program: Program, outcome: Outcome, policy: Policy) -> Parts:
    """Return a line of help for a program and its outcome; no parts where none is due.

    Never raises; takes time linear in the length of the program.
    """
    case = Case(program, outcome, policy)
    finds = () if program.calculation and not program.echo_lines else _HINTS
    return next((found for find in finds if (found := find(case))), ())


def _is_same(one: ast.Module, other: ast.Module) -> bool:
    """Whether two programs are one, but for what a call is given more: `f(a)`, `f(a, x)`."""
    match one.body, other.body:
        case (
            [ast.Expr(ast.Call(ast.Name(name), [first, *_]))],
            [ast.Expr(ast.Call(ast.Name(called), [given, *_]))],
        ):
            return name == called and ast.dump(first) == ast.dump(given)
    return ast.dump(one) == ast.dump(other)


def _say(sentence: str, *added: str) -> Parts:
    """A sentence with code in `backticks`, and code that is added to it."""
    pieces: list[str | Part] = [
        code(each) if index % 2 else each for index, each in enumerate(sentence.split("`"))
    ]
    for index, each in enumerate(added):
        pieces += [" or " if index else ": ", code(each)]
    return parts(*(each for each in pieces if each))


# Right in Python, and a surprise


def _read_otherwise(case: Case) -> Parts:
    if not case.others:
        return ()
    notes = {"other"}.union(*(each.notes for each in case.others))
    why = next(name for name in _SENTENCES if name in notes)
    is_doubtful = len(case.others) > 1 and case.outcome.kind != "ok"
    sentence = _SENTENCES["several" if is_doubtful else why]
    return _say(sentence, *(each.program for each in case.others))


def _power_in_program(case: Case) -> Parts:
    """`x = 3; x^2`: exclusive or with a number, in a program that works with no other bits."""
    source, error = case.program.source, case.outcome.error
    if not case.tree or "^" not in source or _OF_BITS.search(source):
        return ()
    is_refused = error.startswith("TypeError: unsupported operand type(s) for ^")
    is_power = re.match(r"TypeError|\Z", error) and in_code(_POWER, "", source) != source
    meant = in_code(r"\^", "**", source)
    is_due = (is_refused or is_power) and parses(meant)
    return _say(_SENTENCES["power"], meant) if is_due else ()


def _comma_in_program(case: Case) -> Parts:
    """`x = 2,5; x*2`: a pair of digits that is calculated with."""
    if "," not in case.program.source:
        return ()
    pair = r"(?m)\b([^\W\d]\w*)(\s*=\s*\d+),(\d+)(?=\s*(?:;|$))"
    names = {name for name, _, _ in re.findall(pair, case.program.source)}
    meant = re.sub(pair, r"\1\2.\3", case.program.source)
    for node in ast.walk(case.tree) if names and case.tree else ():
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
        others = [each for each in sides if getattr(each, "id", "") not in names]
        is_number = all(isinstance(each, ast.Constant) for each in others)
        if len(others) < len(sides) and is_number and parses(meant):
            return _say(_SENTENCES["comma"], meant)
    return ()


def _inexact(case: Case) -> Parts:
    """`0.1+0.2` and `0.1+0.2==0.3`, whose answers are not the exact ones."""
    shown = case.outcome.output.strip()
    match case.tree.body if case.tree else []:
        case [
            ast.Expr(
                ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[right])
            )
        ]:
            is_so = exact(left) == exact(right) is not None
            is_due = is_so and shown == str(isinstance(sign, ast.NotEq))
            close = f"math.isclose({ast.unparse(left)}, {ast.unparse(right)})"
        case [ast.Expr(value)] if re.fullmatch(r"-?\d{1,9}\.\d{12,}", shown):
            on_paper = exact(value)
            is_short = on_paper is not None and (on_paper * 10**10).denominator == 1
            is_due = is_short and shown != repr(float(on_paper or 0))
            close = f"round({case.program.source.strip()}, 10)"
        case _:
            return ()
    return _say(_SENTENCES["inexact"], close) if is_due else ()


def _only_last(case: Case) -> Parts:
    """`1+1; 2+2`: values that are worked out and not shown."""
    body = case.tree.body if case.tree and not case.program.echo_lines else []
    values = [node.value for node in body if isinstance(node, ast.Expr)]
    if case.outcome.kind != "ok" or body[-1:] == [] or "print(" in case.program.source:
        return ()
    shown = (ast.BinOp, ast.Compare, ast.Name, ast.Constant)
    is_lost = isinstance(body[-1], ast.Expr) and any(
        isinstance(value, shown) and not isinstance(getattr(value, "value", 0), str)
        for value in values[:-1]
    )
    return _say(_SENTENCES["last"]) if is_lost else ()


def _dash(case: Case) -> Parts:
    is_read = "—" in case.program.typed and "—" not in case.program.source
    return _say(_SENTENCES["dash"]) if is_read and case.outcome.kind in ("ok", "error") else ()


# Not Python, or a name that is not there


def _other_language(case: Case) -> Parts:
    """What is written so in other languages: `let x = 5`, `console.log(x)`, `a && !b`."""
    source = case.program.source.strip()
    is_refused = case.reading.refusal and not case.reading.refusal.startswith("write ")
    if not case.is_unknown or is_refused or len(source) > LONGEST:
        return ()
    meant = in_python(source)
    is_left = case.missing and re.search(rf"\b{case.missing}\b", meant)
    return _say("In Python", meant) if meant and not is_left else ()


def _missing_name(case: Case) -> Parts:
    """A name of a module: what it is called here, or how it is imported."""
    name, policy = case.missing, case.policy
    if not name or "Did you" in case.outcome.error:
        return ()
    if name in policy.allowed_imports:
        return _say(f"`{name}` must be imported first", f"import {name}")
    read_as = next((token.roles.get("call", "") for token in tokens(name.lower())), "")
    called = re.match(r"math\.(\w+)\(A\)", read_as)
    meant = called[1] if called else name.lower()
    for short, module in policy.preloaded.items():
        if meant in _names(module, policy):
            return _say(f"In Python `{name}` is written `{short}.{meant}`.")
    for module in policy.allowed_imports:
        if name in _names(module, policy):
            return _say(f"`{name}` must be imported first", f"from {module} import {name}")
    return ()


def _names(module: str, policy: Policy) -> Collection[str]:
    """What a policy gives of a module of Python's own."""
    if given := policy.allowed_imports.get(module):
        return given
    found = import_module(module) if module in sys.stdlib_module_names else None
    return getattr(found, "__all__", dir(found) if found else ())


def _pattern(case: Case) -> Parts:
    """A sentence of hints.toml for an error and a program that have something in common."""
    outcome = case.outcome
    if outcome.kind == "ok":  # nearly every program, whose text need not be searched
        return ()
    kind = "unknown" if case.is_unknown else outcome.kind
    refused = " ".join(each.value for each in outcome.violations) or outcome.error
    text = f"{kind} ({case.reading.refusal}) {refused}\n{case.program.source}"
    for found, said in _PATTERNS:
        if match := found.search(text):
            return _say(match.expand(said))
    return ()


_HINTS = (
    *(_read_otherwise, _power_in_program, _comma_in_program, _inexact, _only_last),
    *(_other_language, _missing_name, _dash, _pattern),
)
"""In order: the first that has something to say is the hint."""
