"""How a program binds its names, as far as the text alone proves it.

A program may call a variable `dir` or `input`: harmless where every use is surely of its own
variable and never of the builtin. And `row.format(x)` is harmless where `row` surely is a literal.
"""

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sandbox.check.literals import is_plain_text
from sandbox.check.node_kinds import KINDS, Nodes, by_identifier, held

__all__ = [
    "DEFINITIONS",
    "ORDINARY_WORDS",
    "Bindings",
    "bindings",
    "namedtuples",
    "own_occurrences",
    "plain_texts",
]

# Words that people name variables with. Other dangerous names are refused in every position.
ORDINARY_WORDS = frozenset(
    ("copyright", "credits", "dir", "exit", "help", "input", "license", "open", "quit", "vars")
)
DEFINITIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef})

_SURE = DEFINITIONS | {ast.Assign, ast.arg}
_FUNCTIONS = DEFINITIONS | {ast.Lambda}
_COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
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

    @property
    def is_sure(self) -> bool:
        """Whether the name is bound in the node's own scope, and not deleted."""
        if self.node.__class__ is ast.Name:
            return self.node.ctx.__class__ is ast.Store
        return self.node.__class__ in _SURE


Bindings = Mapping[str, Sequence[Binding]]


def bindings(nodes: Nodes) -> Bindings:
    """Return every name that a program binds -> its bindings, in any scope and any order."""
    bound: dict[str, list[Binding]] = defaultdict(list)
    plain: set[ast.AST] = set()
    for assign in nodes.get(ast.Assign, ()):
        for target in assign.targets:
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


def plain_texts(names: Iterable[str], bound: Bindings) -> set[str]:
    """Return the names that are bound only to literals whose `.format` reads no attribute."""
    values = {name: {one.value for one in bound[name]} for name in names if name in bound}
    # Each value is looked at once, however many names it has.
    plain = {value for value in set().union(*values.values()) if is_plain_text(value)}
    return {name for name, its in values.items() if its <= plain}


def namedtuples(bound: Bindings) -> set[str]:
    """Return the names that are bound only to classes that namedtuple makes."""

    def only(module: str) -> set[str]:
        return {name for name, its in bound.items() if all(one.value == module for one in its)}

    functions, modules = only("collections.namedtuple"), only("collections")

    def makes_namedtuple(value: ast.expr | str | None) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=name)):
                return name in functions
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="namedtuple")):
                return name in modules
        return False

    return {name for name, its in bound.items() if all(makes_namedtuple(one.value) for one in its)}


def own_occurrences(
    order: Sequence[Any], nodes: Nodes, bound: Bindings, wanted: Collection[str]
) -> set[ast.AST]:
    """Return the Name and arg nodes of `wanted` names that are surely the program's own variables.

    A function's local name never falls back to a builtin (it raises UnboundLocalError). A global
    one does not after an assignment that every path to the use has passed, unless it is deleted.
    """
    sure = _surely_bound(nodes, bound, wanted)
    own: set[ast.AST] = set()
    places: list[_Place] = []
    if sure:
        statements = _statements_with(sure, order)
        body = _block(order[0].body, frozenset(), sure, own)
        places += [place for place in body if place[0][0] in statements]
    while places:
        todo, names, is_global = places.pop()
        while todo:
            node = todo.pop()
            kind = node.__class__
            if kind is ast.Name:
                if node.id in names:
                    own.add(node)
            elif kind in _FUNCTIONS:
                places += _inside_function(node, names, is_global, sure, own)
            elif kind in _COMPREHENSIONS:
                places += _inside_comprehension(node, names, sure)
            elif kind is ast.For and is_global:
                targets = [name for name in _plain_names(node.target) if name.id in sure]
                own.update(targets)
                inner = names.union(name.id for name in targets)
                todo.append(node.iter)
                places += _block(node.orelse, names, sure, own)
                places += _block(node.body, inner, sure, own)
            elif is_global and kind is list and node and isinstance(node[0], ast.stmt):
                places += _block(node, names, sure, own)
            else:
                todo += held(node)
    return own


def _surely_bound(nodes: Nodes, bound: Bindings, wanted: Collection[str]) -> set[str]:
    """Return the names for which a proof is tried: bound, not deleted, moved between no scopes."""
    if "*" in bound:  # from module import *
        return set()
    sure = {name for name in wanted if name in bound and all(one.is_sure for one in bound[name])}
    if sure:  # what a class has not bound yet is looked up outside
        for node in nodes.get(ast.ClassDef, ()):
            sure -= _stored(node.body)
    return sure


def _statements_with(names: set[str], order: Sequence[Any]) -> set[ast.stmt]:
    """Return the statements of a module, given in the order of a walk, in which a name stands."""
    body = {*order[0].body}
    found = set()
    for node in order:
        if node in body:
            statement = node
        elif node.__class__ is ast.Name:
            if node.id in names:
                found.add(statement)
        elif node.__class__ is ast.arg and node.arg in names:
            found.add(statement)
    return found


# Nodes and lists of nodes, the names that are surely own there, and whether in no function.
_Place = tuple[list[Any], frozenset[str], bool]


def _block(
    statements: Sequence[ast.stmt], names: frozenset[str], sure: set[str], own: set[ast.AST]
) -> Iterator[_Place]:
    """Yield global statements, each with the names that the ones before it have bound for good."""
    for statement in statements:
        yield [statement], names, True
        match statement:
            case ast.Assign(targets=targets):
                plain = [name for target in targets for name in _plain_names(target)]
            case ast.AnnAssign(target=ast.Name() as name, value=ast.expr()):
                plain = [name]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names |= sure & {statement.name}
                continue
            case _:
                continue
        plain = [name for name in plain if name.id in sure]
        own.update(plain)
        names = names.union(name.id for name in plain)


def _plain_names(target: ast.expr) -> Iterator[ast.Name]:
    """Yield the names that an assignment to `target` binds."""
    todo = [target]
    while todo:
        match todo.pop():
            case ast.Name() as name:
                yield name
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                todo += elts
            case ast.Starred(value=value):
                todo.append(value)


def _inside_function(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    names: frozenset[str],
    is_global: bool,
    sure: set[str],
    own: set[ast.AST],
) -> Iterator[_Place]:
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    own.update(one for one in parameters if one.arg in sure)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    local = {one.arg for one in parameters} | _stored(body)
    outside: list[Any] = [arguments]
    if not isinstance(function, ast.Lambda):
        outside += [function.returns, function.decorator_list]
        if is_global and not function.decorator_list:
            local.add(function.name)  # bound before anybody can call it
    yield outside, names, is_global
    yield [*body], names | (sure & local), False


def _inside_comprehension(node: Any, names: frozenset[str], sure: set[str]) -> Iterator[_Place]:
    first = node.generators[0].iter  # the only part that is evaluated outside
    yield [first], names, False
    inside = [part for part in held(node) if part is not node.generators]
    for generator in node.generators:
        inside += [part for part in held(generator) if part is not first]
    yield inside, names | (sure & _stored([one.target for one in node.generators])), False


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that these nodes store in the scope that they stand in."""
    stored = set()
    todo: list[Any] = [*nodes]
    while todo:
        node = todo.pop()
        kind = node.__class__
        if kind is ast.Name:
            if node.ctx.__class__ is ast.Store:
                stored.add(node.id)
        elif kind in DEFINITIONS:
            stored.add(node.name)
            todo += [node.args, node.decorator_list]
        elif kind is ast.ClassDef:
            todo += [node.decorator_list, node.bases, node.keywords]
        elif kind is ast.Lambda:
            todo.append(node.args)
        elif kind not in _COMPREHENSIONS:
            todo += held(node)
    return stored
