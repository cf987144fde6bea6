"""One line of help for answers that surprise, and for what is not Python at all.

Whether a hint is due is told by the outcome, the program's tree or how the text was read, never
by a word somewhere in it. A hint changes neither what is run nor the answer: it stands beside it.
"""

import ast
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module

from function.natural.other_languages import in_code, in_python
from function.natural.reader import LONGEST, Expression, Reading, read
from function.natural.terms import polynomial
from function.natural.typography import parses
from function.parts import Part, Parts, code, parts
from function.program import Program
from sandbox import Outcome, parse


@dataclass(frozen=True)
class Case:
    """What was typed and run, what became of it, and what else may have been meant."""

    program: Program
    outcome: Outcome
    reading: Reading

    @cached_property
    def tree(self) -> ast.Module | None:
        """The program's tree, where it is short enough to have been typed by hand."""
        is_short = len(self.program.source) <= LONGEST * 10
        tree = self.program.tree
        return tree if is_short and isinstance(tree, ast.Module) else None

    @cached_property
    def expression(self) -> ast.expr | None:
        """The tree where it is a single expression."""
        match self.tree:
            case ast.Module(body=[ast.Expr(value=value)]):
                return value
        return None

    @cached_property
    def others(self) -> tuple[Expression, ...]:
        """What else the text may mean."""
        return differing(self.program.typed, self.outcome, self.reading)


def hint(program: Program, outcome: Outcome) -> Parts:
    """Return a line of help for a program and its outcome; no parts where none is due.

    Never raises; takes time linear in the length of the program.
    """
    if program.calculation:
        return ()
    misleads = may_mislead(program.typed, outcome)
    case = Case(program, outcome, read(program.typed) if misleads else Reading())
    return next((found for find in _HINTS.get(outcome.kind, ()) if (found := find(case))), ())


def may_mislead(source: str, outcome: Outcome) -> bool:
    """Whether a text is worth reading in another way than Python's: it failed, or looks like it."""
    if outcome.kind == "ok":
        return len(source) <= LONGEST and bool(_MISLEADING.search(source))
    return outcome.kind in ("syntax_error", "error")


def differing(source: str, outcome: Outcome, reading: Reading) -> tuple[Expression, ...]:
    """The ways to read a text that mean something else than Python makes of it.

    None where Python gave a value that is one of them.
    """
    if not reading.expressions:
        return ()
    tree = parse(source)
    python = ast.dump(tree) if isinstance(tree, ast.Module) else ""
    others = [each for each in reading.expressions if ast.dump(ast.parse(each.program)) != python]
    is_one = outcome.kind == "ok" and len(others) < len(reading.expressions)
    return () if is_one else tuple(others)


_MISLEADING = re.compile(
    r"\^|\d,\d|\d\s*%|\d[/.-]\d{1,2}[/.-]\d{4}|\d{4}-\d\d?-\d|\A\s*[^\W\d]+\s*:|math\.\w+\(\d"
)


# Right in Python, and a surprise


def _read_otherwise(case: Case) -> Parts:
    others = case.others
    if not others:
        return ()
    notes = frozenset[str]().union(*(each.notes for each in others))
    if len(others) > 1 and case.outcome.kind != "ok":
        why = parts("This can be read in more than one way")
    elif "date" in notes:
        why = parts("In Python this is a sum of whole numbers; dates are made by ", code("dt"))
    elif notes & {"comma", "group"}:
        number = all(re.fullmatch(r"[\d_]+", each.text) for each in others)
        why = parts(
            "In Python a comma separates values; ",
            *(
                ("digits are grouped by ", code("_"))
                if number
                else ("the decimal sign is a point",)
            ),
        )
    elif "power" in notes:
        why = _XOR
    elif "percent" in notes:
        why = parts(
            "In Python ", code("%"), " is the remainder of a division; a percent is a hundredth"
        )
    else:
        why = parts("This is Python for something else; as a calculation")
    return why + parts(": ") + _alternatives(others)


_XOR = parts("In Python ", code("^"), " is exclusive or (XOR); a power is written ", code("**"))


def _alternatives(expressions: tuple[Expression, ...]) -> Parts:
    pieces: list[str | Part] = []
    for each in expressions:
        pieces += [" or "] * bool(pieces) + [code(each.program)]
    return parts(*pieces)


def _power_in_program(case: Case) -> Parts:
    """`x = 3; x^2`: exclusive or with a number, in a program that works with no other bits."""
    error = case.outcome.error
    if "^" not in case.program.source or case.tree is None or not re.match(r"TypeError|\Z", error):
        return ()
    operators = [node.op for node in _operations(case.tree)]
    is_of_bits = any(
        isinstance(op, ast.BitAnd | ast.BitOr | ast.LShift | ast.RShift) for op in operators
    )
    if is_of_bits or re.search(r"\b0[xXbBoO]|\b(?:bin|hex)\(", case.program.source):
        return ()
    is_refused = error.startswith("TypeError: unsupported operand type(s) for ^")
    if not is_refused and not any(_is_like_a_power(node) for node in _operations(case.tree)):
        return ()
    meant = in_code(r"\^", "**", case.program.source)
    return _XOR + parts(": ", code(meant)) if parses(meant) else ()


def _operations(tree: ast.AST) -> Iterator[ast.BinOp]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.BinOp))


def _is_like_a_power(node: ast.BinOp) -> bool:
    match node:
        case ast.BinOp(op=ast.BitXor(), right=ast.Constant(value=int() | float() as number)):
            return number not in (0, 1) and not isinstance(node.left, ast.List | ast.Set)
    return False


def _comma_in_program(case: Case) -> Parts:
    """`x = 2,5; x*2`: a pair of digits that is calculated with."""
    if not re.search(r"=\s*\d+,\d", case.program.source) or case.tree is None:
        return ()
    pairs = {
        target.id
        for node in ast.walk(case.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    operands = {
        one.id
        for node in _operations(case.tree)
        for one, other in ((node.left, node.right), (node.right, node.left))
        if isinstance(one, ast.Name)
        and (isinstance(other, ast.Constant) or (isinstance(other, ast.Name) and other.id in pairs))
    }
    meant = re.sub(r"(?m)(=\s*\d+),(\d+)(?=\s*(?:;|$))", r"\1.\2", case.program.source)
    if not pairs & operands or meant == case.program.source or not parses(meant):
        return ()
    return parts("In Python a comma separates values; the decimal sign is a point: ", code(meant))


def _rounding(case: Case) -> Parts:
    """A sum whose answer is not the float nearest to the exact one, such as 0.1+0.2."""
    shown = case.outcome.output.strip()
    if not re.fullmatch(r"-?\d{1,9}\.\d{12,}", shown) or not case.expression:
        return ()
    exact = _exact(case.expression)
    if exact is None or (exact * 10**10).denominator != 1 or shown == repr(float(exact)):
        return ()
    return _INEXACT + parts(code(f"round({case.program.source.strip()}, 10)"))


def _inexact_comparison(case: Case) -> Parts:
    answered = case.outcome.output.strip()
    if answered not in ("False", "True"):
        return ()
    match case.expression:
        case ast.Compare(
            left=left, ops=[ast.Eq() | ast.NotEq() as comparison], comparators=[right]
        ):
            exact = _exact(left)
            surprise = "False" if isinstance(comparison, ast.Eq) else "True"
            if answered == surprise and exact is not None and exact == _exact(right):
                close = f"math.isclose({ast.unparse(left)}, {ast.unparse(right)})"
                return _INEXACT + parts(code(close))
    return ()


_INEXACT = parts("Floats are binary and hold most decimal fractions inexactly: ")


def _exact(node: ast.expr) -> Fraction | None:
    """A sum of literals as it is worked out on paper; None for anything else."""
    poly = polynomial(node)
    return poly[0] if poly and not any(poly[1:]) else None


def _only_last(case: Case) -> Parts:
    """`1+1; 2+2`: values that are worked out and not shown."""
    body = case.tree.body if case.tree and not case.program.echo_lines else []
    values = [node.value for node in body if isinstance(node, ast.Expr)]
    if len(values) < 2 or not isinstance(body[-1], ast.Expr) or "print(" in case.program.source:
        return ()
    shown = (ast.BinOp, ast.Compare, ast.Name, ast.Constant)
    is_lost = any(
        isinstance(value, shown) and not isinstance(getattr(value, "value", 0), str)
        for value in values[:-1]
    )
    return is_lost * parts("Only the last value is shown; ", code("print"), " shows the others.")


def _dash(case: Case) -> Parts:
    if "—" not in case.program.typed or "—" in case.program.source:
        return ()
    return parts("The dash ", code("—"), " was read as a minus sign.")


# Not Python, or a name that is not there


def _refused(case: Case) -> Parts:
    if case.outcome.kind == "error" and not case.outcome.error.startswith("NameError"):
        return ()  # what it names is there: perhaps a library
    match case.reading.refusal:
        case "exchange":
            return parts(
                "There is no network here, so no exchange rates: multiply by the rate, as in ",
                code("5 * 0.92"),
                ".",
            )
        case "algebra":
            return parts(
                "There is no algebra with symbols here, only with numbers: put them in, as in ",
                code("x = 2; x**2 - 5*x + 6"),
                ".",
            )
        case "draw":
            return parts(
                "Nothing can be drawn here; a table of values can be printed: ",
                code("for x in range(5): print(x, x**2)"),
            )
    return ()


def _picture_file(case: Case) -> Parts:
    if "savefig(" in case.program.source and "PermissionError" in case.outcome.error:
        return parts("Leave out ", code("savefig"), ": every figure that is open is sent to you.")
    return ()


def _missing_name(case: Case) -> Parts:
    error = case.outcome.error
    match = re.match(r"NameError: name '(\w+)' is not defined", error)
    if not match or "Did you" in error:
        return ()
    name = match[1]
    if name in ("ans", "Ans", "_"):
        return parts(
            code(name), " stands for your last answer here, if that was a number or a short text."
        )
    lower = name.lower()
    written = _WRITTEN.get(lower) or (f"math.{lower}" if hasattr(math, lower) else "")
    if written:
        return parts("In Python ", code(name), " is written ", code(written), ".")
    if module := _module_of(name):
        line = f"import {name}" if module == name else f"from {module} import {name}"
        return parts(code(name), " must be imported first: ", code(line))
    if re.fullmatch(rf"\s*print\(\s*{name}\s*\)\s*", case.program.source):
        return parts("Text stands in quotes: ", code(f'print("{name}")'))
    return ()


_WRITTEN = {"ln": "math.log", "lg": "math.log10", "tg": "math.tan", "fact": "math.factorial"}
_WRITTEN |= {"randint": "random.randint", "choice": "random.choice"}
_LIBRARIES = (
    *("collections", "dataclasses", "datetime", "decimal", "fractions", "functools"),
    *("itertools", "statistics", "string"),
)
"""Modules whose names people use without importing them."""


def _module_of(name: str) -> str:
    """The module that a name is, or that has it; else ""."""
    if name in sys.stdlib_module_names:
        return name
    modules = map(import_module, _LIBRARIES)
    having = (each for each in modules if name in getattr(each, "__all__", dir(each)))
    return next((each.__name__ for each in having), "")


def _other_language(case: Case) -> Parts:
    """What is written so in other languages: `let x = 5`, `console.log(x)`, `a && !b`."""
    source = case.program.source.strip()
    missing = re.match(r"NameError: name '(\w+)'", case.outcome.error)
    if len(source) > LONGEST or (case.outcome.kind == "error" and not missing):
        return ()
    meant = in_python(source)
    is_left = missing and re.search(rf"\b{missing[1]}\b", meant)
    return parts("In Python: ", code(meant)) if meant and not is_left else ()


def _greeting(case: Case) -> Parts:
    """Words, and nothing to work out."""
    is_word = case.outcome.kind != "error" or case.outcome.error.startswith("NameError")
    words = r"/?[^\W\d_][^\d+*/=()\[\]{}<>^%#\"]*|[?!¿¡.\s]+"
    if not is_word or not re.fullmatch(words, case.program.source):
        return ()
    return parts(
        "Send something to work out, such as ",
        code("2+2"),
        ", or a whole Python program; /help tells more.",
    )


def _rejected(case: Case) -> Parts:
    names = {each.value for each in case.outcome.violations}
    if "input" in names:
        return parts("For example, write ", code("n = 5"), " instead of ", code("n = input()"), ".")
    return _greeting(case) if names <= {"help", "exit", "quit", "license", "credits"} else ()


_HINTS: dict[str, tuple[Callable[[Case], Parts], ...]] = {
    "ok": (
        _read_otherwise,
        _power_in_program,
        _comma_in_program,
        _rounding,
        _inexact_comparison,
        _only_last,
        _dash,
    ),
    "error": (
        _read_otherwise,
        _refused,
        _power_in_program,
        _comma_in_program,
        _other_language,
        _missing_name,
        _picture_file,
        _dash,
        _greeting,
    ),
    "syntax_error": (_read_otherwise, _refused, _other_language, _greeting),
    "rejected": (_rejected,),
}
"""By the kind of outcome, in order: the first that has something to say is the hint."""
