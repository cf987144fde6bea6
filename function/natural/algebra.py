"""Algebra as it is written on paper, in a program: `diff(x^2)`, `solve(2x + 3 = 7)`."""

import ast
import re

from function.natural.other_languages import in_code
from function.natural.typography import parses
from sandbox import Outcome, parse

_LONGEST = 1000  # characters of a program with equations, which is written anew

_FACTOR = (
    r"(?= ?(?:[A-Za-z]\b|(?:a|arc)?(?:sin|cos|tan|cot)h?\b|(?:exp|ln|log|pi|sqrt)\b|\((?!\))))"
)
_MATRIX = r"\A(?i:(?:what is |find )?(?:the )?{} of (?:the )?(?:matrix )?)(\[\[.+\]\])\Z"
_SIGNS = (
    (_MATRIX.format("determinant"), r"Matrix(\1).det()"),
    (_MATRIX.format("inverse"), r"Matrix(\1).inv()"),
    (r"\^", "**"),
    (rf"(?<![\w.])(\d+\.?\d*|\.\d+)(?!e[+-]?\d|j\b|(?<=\b0)[box]\w){_FACTOR} ?", r"\1*"),
    (rf"\){_FACTOR} ?", ")*"),
)
_FAILED = re.compile(
    r"TypeError: (?:unsupported operand type\(s\) for \^"
    r"|'(?:Add|Mul|Pow|int|float)' object is not callable)"
)
_EQUALS = r"(?<![=<>!:])=(?!=|\s*(?:True|False)\b)"
_SOLVERS = re.compile(r"\w*solve\w*|plot_implicit")


def written(text: str) -> str:
    """The program that a text that is no Python is on paper; "" if it is none."""
    source = _with_signs(text)
    if parses(source):
        return (_with_equations(source) or source) if source != text else ""
    if solved := _with_equations(in_code(_EQUALS, "==", source)):
        return solved
    equations = re.split(r"[,;\n]|\band\b", re.sub(r"\A\s*solve\b(?!\()", "", source).strip())
    if len(equations) < 2 or any(len(re.findall(_EQUALS, each)) != 1 for each in equations):
        return ""
    return _with_equations(f"solve([{re.sub(_EQUALS, '==', ', '.join(equations))}])")


def rewritten(source: str, outcome: Outcome) -> str:
    """What a program that gave no value is if read as on paper; "" if that is the same."""
    signs = _with_signs(source) if _FAILED.match(outcome.error) else source
    return _with_equations(signs) or (signs if signs != source and parses(signs) else "")


def _with_signs(source: str) -> str:
    for pattern, replacement in _SIGNS:
        source = in_code(pattern, replacement, source)
    return source


def _with_equations(source: str) -> str:
    """A program with `Eq(a, b)` for each `a == b` that is solved; "" if there is none."""
    tree = parse(source)
    if not isinstance(tree, ast.Module) or "==" not in source or len(source) > _LONGEST:
        return ""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    solved = [call for call in calls if _SOLVERS.fullmatch(_name(call.func))]
    try:
        before = ast.unparse(tree) if solved else ""
        for call in solved:
            call.args = [_equation(each) for each in call.args]
        after = ast.unparse(tree) if solved else ""
    except RecursionError:  # as for a sum of a thousand terms
        return ""
    return after if after != before else ""


def _name(function: ast.expr) -> str:
    name: str = getattr(function, "id", getattr(function, "attr", ""))
    return name


def _equation(node: ast.expr) -> ast.expr:
    match node:
        case ast.Compare(left, [ast.Eq()], [right]):
            return ast.Call(ast.Name("Eq"), [left, right], [])
        case ast.List() | ast.Tuple():
            node.elts = [_equation(each) for each in node.elts]
    return node
