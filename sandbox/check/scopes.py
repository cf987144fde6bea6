"""How a program binds its names, as far as the text alone proves it.

A program may call a variable `dir` or `input`; a pattern may name `int` where that is the builtin.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from sandbox.check.node_kinds import KINDS, Nodes, by_identifier, walk

# Words that people name variables with. Other dangerous names are refused in every position.
ORDINARY_WORDS = frozenset(
    ("copyright", "credits", "dir", "exit", "help", "input", "license", "open", "quit", "vars")
)
DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})
# What has a scope of its own; `_unsure` begins with the bodies of classes.
_SCOPES = DEFINITIONS | {ast.Lambda, ast.ClassDef}
# What an identifier is where it is bound, other than by assignments and imports.
_BOUND = frozenset({"bound", "definition", "parameter", "type_parameter"})


class Binding(NamedTuple):
    """A node that binds a name or moves it to another scope, and to what.

    `value` is an expression (of a plain assignment), a dotted name (of an import), or None, which
    stands for all else (parameters, loops, functions, patterns, deletions).
    """

    node: Any
    value: ast.expr | str | None


def _bindings(nodes: Nodes) -> Iterator[tuple[str, Any, ast.expr | str | None]]:
    """Yield each name with a node that binds it, and to what."""
    plain = {target: one for one in nodes.get(ast.Assign, ()) for target in one.targets}
    plain |= {one.target: one for one in nodes.get(ast.AnnAssign, ()) if one.value is not None}
    for name in nodes.get(ast.Name, ()):
        if name.ctx.__class__ is not ast.Load:
            assign = plain.get(name)
            yield name.id, assign or name, assign and assign.value
    for node in nodes.get(ast.Import, ()):
        for alias in node.names:
            module = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or module, node, module
    for node in nodes.get(ast.ImportFrom, ()):
        for alias in node.names:
            yield alias.asname or alias.name, node, f"{node.module}.{alias.name}"
    for kind in KINDS.keys() & nodes.keys():
        for field, role in KINDS[kind].identifiers:
            if role in _BOUND:
                for name, holders in by_identifier(nodes[kind], field).items():
                    yield from ((name, node, None) for node in holders)


class Scopes:
    """Answers for one program; each is found out when it is first asked for."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    @cached_property
    def bound(self) -> Mapping[str, Sequence[Binding]]:
        """Every name that the program binds -> its bindings, in any scope and any order."""
        bound: dict[str, list[Binding]] = defaultdict(list)
        for name, node, value in _bindings(self.nodes):
            bound[name].append(Binding(node, value))
        return bound

    def is_sure(self, name: ast.AST) -> bool:
        """Tell whether a name holds what the bindings in the text say, or the builtin for none."""
        return "*" not in self.bound and name not in self._unsure

    @cached_property
    def _unsure(self) -> set[ast.AST]:
        """What is evaluated or bound in a class's scope, whose metaclass may bind any name.

        The bodies of functions and lambdas are not; their defaults, decorators, annotations and
        type parameters are.
        """
        found: set[ast.AST] = set()
        todo: list[Any] = [node.body for node in self.nodes.get(ast.ClassDef, ())]
        while todo:
            node = todo.pop()
            kind = node.__class__
            if kind in KINDS:
                found.add(node)
            if kind is list:
                todo += node
            elif kind in _SCOPES:
                todo += [one for one in KINDS[kind].held(node) if one is not node.body]
            elif kind in KINDS:
                todo += KINDS[kind].held(node)
        return found

    @cached_property
    def own(self) -> set[str]:
        """The ordinary words that are variables of the program: bound somewhere, never deleted.

        A use need not come after a binding: the guest has none of the builtins that the policy
        names, so the worst case is a NameError. A star import may bind any name, so none is sure
        then; a method binds its name in its class alone.
        """
        if "*" in self.bound:
            return set()
        return {
            name
            for name in ORDINARY_WORDS & self.bound.keys()
            if not {one.node for one in self.bound[name]} <= self.methods
            and not any(
                isinstance(one.node, ast.Name) and isinstance(one.node.ctx, ast.Del)
                for one in self.bound[name]
            )
        }

    @cached_property
    def imported(self) -> dict[str, str]:
        """The names that are bound to one thing by imports alone -> its dotted name."""
        return {
            name: its[0].value
            for name, its in self.bound.items()
            if isinstance(its[0].value, str) and all(one.value == its[0].value for one in its)
        }

    @cached_property
    def methods(self) -> set[ast.AST]:
        """The functions that stand in a class itself."""
        classes = self.nodes.get(ast.ClassDef, ())
        return {one for node in classes for one in node.body if one.__class__ in DEFINITIONS}

    @cached_property
    def class_level(self) -> set[ast.AST]:
        """What defines a method: a `def`, and both sides of `__radd__ = __add__`."""
        found = self.methods.copy()
        for node in self.nodes.get(ast.ClassDef, ()):
            for one in node.body:
                if one.__class__ is ast.Assign:
                    sides = (*one.targets, one.value)
                    found.update(side for side in sides if isinstance(side, ast.Name))
        return found

    @cached_property
    def in_classes(self) -> set[ast.AST]:
        """All that the bodies of classes hold."""
        found: set[ast.AST] = set()
        for node in self.nodes.get(ast.ClassDef, ()):  # an outer class before its inner ones
            if node not in found:
                found.update(one for part in node.body for one in walk(part))
        return found
