"""How a program binds its names, as far as the text alone proves it.

A program may call a variable `dir` or `input`: harmless where every use is surely of its own
variable and never of the builtin. And `row.format(...)` is harmless where `row` is surely a literal.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass
class Bindings:
    """Every name that a program binds -> what it is bound to, in any scope and any order.

    A value is an expression (of a plain assignment), a dotted name (of an import), or None, which
    stands for all else: parameters, loops, functions, patterns, deletions.
    """

    values: dict[str, list[ast.expr | str | None]] = field(default_factory=dict)
    star_import: bool = False

    def add(self, name: str | None, value: ast.expr | str | None = None) -> None:
        """Note one more binding of `name`."""
        if name is not None:
            self.values.setdefault(name, []).append(value)


def bindings(tree: ast.AST) -> Bindings:
    """Return how the names in a tree are bound."""
    found = Bindings()
    plain: set[ast.AST] = set()
    for node in ast.walk(tree):  # parents come before their children
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        plain.add(target)
                        found.add(target.id, value)
            case ast.Name(ctx=ast.Store() | ast.Del()) if node not in plain:
                found.add(node.id)
            case ast.Import(names=aliases):
                for alias in aliases:
                    top = alias.name.partition(".")[0]
                    found.add(alias.asname or top, alias.name if alias.asname else top)
            case ast.ImportFrom(module=module, names=aliases):
                for alias in aliases:
                    found.add(alias.asname or alias.name, f"{module}.{alias.name}")
                    found.star_import |= alias.name == "*"
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    found.add(name)
            case ast.arg(arg=name) | ast.MatchMapping(rest=name):
                found.add(name)
            case ast.alias():
                pass
            case ast.AST(name=str(name)):  # functions, classes, except-as, captures, type params
                found.add(name)
    return found


def own_occurrences(tree: ast.AST, wanted: set[str]) -> set[ast.AST]:
    """Return the Name and arg nodes of `wanted` names that are surely the program's own variables.

    A function's local name never falls back to a builtin (it raises UnboundLocalError). A global
    one does not after an assignment that every path to the use has passed, unless it is deleted.
    """
    wanted = wanted - _shaken(tree, wanted)
    own: set[ast.AST] = set()
    todo: list[_Place] = [_Place(tree, frozenset(), True)]
    while todo and wanted:
        place = todo.pop()
        node = place.node
        if isinstance(node, ast.Name) and node.id in place.own:
            own.add(node)
        elif isinstance(node, _Function | ast.Lambda):
            todo += _inside_function(place, wanted, own)
        elif isinstance(node, _Comprehension):
            todo += _inside_comprehension(place, wanted)
        elif isinstance(node, ast.For) and place.is_global:
            names = {name.id: name for name in _plain_names(node.target) if name.id in wanted}
            own.update(names.values())
            todo += [place.at(node.iter), *_block(node.orelse, place, wanted, own)]
            todo += _block(node.body, place.with_own(names), wanted, own)
        else:
            is_global = place.is_global and not isinstance(node, ast.ClassDef)
            inner = _Place(node, place.own, is_global)
            for value in (getattr(node, name, None) for name in node._fields):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    todo += _block(value, inner, wanted, own)
                else:
                    parts = value if isinstance(value, list) else [value]
                    todo += [inner.at(part) for part in parts if isinstance(part, ast.AST)]
    return own


@dataclass(frozen=True)
class _Place:
    """A node, the names that are surely own there, and whether it is in no function or class."""

    node: ast.AST
    own: frozenset[str]
    is_global: bool

    def at(self, node: ast.AST) -> "_Place":
        return _Place(node, self.own, self.is_global)

    def with_own(self, names: Iterable[str]) -> "_Place":
        return _Place(self.node, self.own.union(names), self.is_global)


def _block(
    statements: list[ast.stmt], place: _Place, wanted: set[str], own: set[ast.AST]
) -> list[_Place]:
    """Return a block's statements, each with what the ones before it have bound for good."""
    places = []
    for statement in statements:
        places.append(place.at(statement))
        if not place.is_global:
            continue
        bound = set()
        match statement:
            case ast.Assign(targets=targets):
                names = [name for target in targets for name in _plain_names(target)]
                own.update(name for name in names if name.id in wanted)
                bound = {name.id for name in names}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound = {name}
        place = place.with_own(bound & wanted)
    return places


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


def _inside_function(place: _Place, wanted: set[str], own: set[ast.AST]) -> Iterator[_Place]:
    function = place.node
    assert isinstance(function, _Function | ast.Lambda)
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    own.update(one for one in parameters if one.arg in wanted)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    local = wanted & ({one.arg for one in parameters} | _stored(body))
    if isinstance(function, _Function):
        if place.is_global and not function.decorator_list:
            local |= wanted & {function.name}  # bound before anybody can call it
        yield from (place.at(one) for one in function.decorator_list)
        if function.returns is not None:
            yield place.at(function.returns)
    yield place.at(arguments)
    inner = _Place(function, place.own.union(local), False)
    yield from map(inner.at, body)


def _inside_comprehension(place: _Place, wanted: set[str]) -> Iterator[_Place]:
    comprehension = place.node
    assert isinstance(comprehension, _Comprehension)
    first = comprehension.generators[0].iter  # the only part that is evaluated outside
    targets = [one.target for one in comprehension.generators]
    inner = place.with_own(wanted & _stored(targets))
    yield place.at(first)
    for node in ast.iter_child_nodes(comprehension):
        for part in ast.iter_child_nodes(node) if isinstance(node, ast.comprehension) else [node]:
            if part is not first:
                yield _Place(part, inner.own, False)


def _stored(nodes: list[ast.stmt] | list[ast.expr]) -> set[str]:
    """Return the names that these nodes store in the scope that they stand in."""
    stored = set()
    todo: list[ast.AST] = list(nodes)
    while todo:
        node = todo.pop()
        match node:
            case ast.Name(ctx=ast.Store()):
                stored.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                stored.add(node.name)
                todo += [node.args, *node.decorator_list]
            case ast.ClassDef():
                todo += [*node.decorator_list, *node.bases, *node.keywords]
            case ast.Lambda():
                todo.append(node.args)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pass
            case _:
                todo += ast.iter_child_nodes(node)
    return stored


def _shaken(tree: ast.AST, wanted: set[str]) -> set[str]:
    """Return the names for which no proof is tried: deleted, moved between scopes, or stranger."""
    found = bindings(tree)
    if found.star_import:
        return wanted
    shaken = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(ctx=ast.Del()):
                shaken.add(node.id)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                shaken.update(names)
            case ast.alias(name=name, asname=asname):
                shaken.add(asname or name)
            case ast.ClassDef(body=body, name=name):  # a class body's names do fall back
                shaken |= _stored(body) | {name}
            case ast.MatchMapping(rest=str(rest)):
                shaken.add(rest)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case ast.AST(name=str(name)):  # except-as, captures, type parameters
                shaken.add(name)
    return shaken & wanted
