"""How a program binds its names, as far as the text alone proves it.

A program may call a variable `dir` or `input`; a pattern may name `int` where that is the builtin.
"""

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from sandbox.check.node_kinds import KINDS, Nodes, by_identifier

__all__ = [
    "DEFINITIONS",
    "ORDINARY_WORDS",
    "Bindings",
    "bindings",
    "imported_modules",
    "own_names",
    "unsure_nodes",
]

# Words that people name variables with. Other dangerous names are refused in every position.
ORDINARY_WORDS = frozenset(
    ("copyright", "credits", "dir", "exit", "help", "input", "license", "open", "quit", "vars")
)
DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})

# Kinds that bind their one identifier; type parameters are newer than Python 3.11.
_NAMED = DEFINITIONS | {
    *(ast.arg, ast.ClassDef, ast.ExceptHandler, ast.Global, ast.Nonlocal),
    *(ast.MatchAs, ast.MatchStar, ast.MatchMapping),
    *(
        getattr(ast, kind)
        for kind in ("TypeVar", "ParamSpec", "TypeVarTuple")
        if hasattr(ast, kind)
    ),
}


class Binding(NamedTuple):
    """A node that binds a name or moves it to another scope, and to what.

    `value` is an expression (of a plain assignment), a dotted name (of an import), or None, which
    stands for all else (parameters, loops, functions, patterns, deletions).
    """

    node: Any
    value: ast.expr | str | None


Bindings = Mapping[str, Sequence[Binding]]


def bindings(nodes: Nodes) -> Bindings:
    """Return every name that a program binds -> its bindings, in any scope and any order."""
    bound: dict[str, list[Binding]] = defaultdict(list)
    plain: set[ast.AST] = set()
    annotated = [one for one in nodes.get(ast.AnnAssign, ()) if one.value is not None]
    for assign in (*nodes.get(ast.Assign, ()), *annotated):
        for target in [assign.target] if assign.__class__ is ast.AnnAssign else assign.targets:
            if target.__class__ is ast.Name:
                plain.add(target)
                bound[target.id].append(Binding(assign, assign.value))
    for name in nodes.get(ast.Name, ()):
        if name.ctx.__class__ is not ast.Load and name not in plain:
            bound[name.id].append(Binding(name, None))
    for node in nodes.get(ast.Import, ()):
        for alias in node.names:
            module = alias.name if alias.asname else alias.name.partition(".")[0]
            bound[alias.asname or module].append(Binding(node, module))
    for node in nodes.get(ast.ImportFrom, ()):
        for alias in node.names:
            value = f"{node.module}.{alias.name}"
            bound[alias.asname or alias.name].append(Binding(node, value))
    for kind in _NAMED & nodes.keys():
        [field] = KINDS[kind].identifiers
        for identifier, holders in by_identifier(nodes[kind], field).items():
            bound[identifier] += [Binding(node, None) for node in holders]
    return bound


def unsure_nodes(nodes: Nodes) -> set[ast.AST]:
    """Return what is evaluated or bound in a class's scope, whose metaclass may bind any name.

    The bodies of functions and lambdas are not; their defaults, decorators and annotations are.
    """
    found: set[ast.AST] = set()
    todo: list[Any] = [node.body for node in nodes.get(ast.ClassDef, ())]
    while todo:
        node = todo.pop()
        kind = node.__class__
        if kind in KINDS:
            found.add(node)
        if kind is list:
            todo += node
        elif kind in DEFINITIONS:
            todo += [node.args, node.decorator_list, node.returns]
        elif kind is ast.Lambda:
            todo.append(node.args)
        elif kind is ast.ClassDef:  # its body is among the first ones
            todo += [node.decorator_list, node.bases, node.keywords]
        elif kind in KINDS:
            todo += KINDS[kind].held(node)
    return found


def imported_modules(bound: Bindings) -> dict[str, str]:
    """Return the names that are bound to one module by imports alone -> that module."""
    return {
        name: its[0].value
        for name, its in bound.items()
        if isinstance(its[0].node, ast.Import)
        and isinstance(its[0].value, str)
        and all(one.value == its[0].value for one in its)
    }


def own_names(bound: Bindings, methods: Set[ast.AST]) -> set[str]:
    """Return the ordinary words that are variables of the program: bound somewhere, never deleted.

    A use need not come after a binding: the guest has none of the builtins that the policy names,
    so the worst case is a NameError. A star import may bind any name, so none is sure then; a
    method binds its name in its class alone.
    """
    if "*" in bound:
        return set()
    return {
        name
        for name in ORDINARY_WORDS & bound.keys()
        if not {one.node for one in bound[name]} <= methods
        and not any(map(_is_deletion, bound[name]))
    }


def _is_deletion(binding: Binding) -> bool:
    return isinstance(binding.node, ast.Name) and isinstance(binding.node.ctx, ast.Del)
