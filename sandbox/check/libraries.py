"""Whether a program needs what a policy's libraries and its prelude bring."""

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from sandbox.check.node_kinds import by_kind, walk
from sandbox.policy.libraries import is_standard

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

# A node, and the names that may be a library's where it stands: not surely bound by the program.
_Place = tuple[Any, frozenset[str]]


def needs_libraries(tree: ast.Module, names: Collection[str]) -> bool:
    """Return whether a program imports a module that is not Python's own, or may find one of these
    names other than as its own variable.
    """
    nodes = by_kind(walk(tree))
    modules = [alias.name for node in nodes.get(ast.Import, ()) for alias in node.names]
    modules += [node.module for node in nodes.get(ast.ImportFrom, ()) if node.module]
    if not all(map(is_standard, modules)):
        return True
    mentioned = {node.id for node in nodes.get(ast.Name, ())}
    todo: list[_Place] = [(tree, frozenset(names) & mentioned)]
    while todo:
        node, free = todo.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Load() | ast.Del()) if name in free:
                return True
            case ast.AugAssign(target=ast.Name(id=name)) if name in free:
                return True
        if free:
            todo += _inside(node, free)
    return False


def _inside(node: Any, free: frozenset[str]) -> Iterator[_Place]:
    """Yield what a node holds."""
    if isinstance(node, _FUNCTIONS):
        body = {*node.body} if isinstance(node.body, list) else {node.body}
        inner = free - _stored([node.args, *body]) - {getattr(node, "name", "")}
        for each in ast.iter_child_nodes(node):
            yield each, inner if each in body else free
    elif isinstance(node, _COMPREHENSIONS):
        inner = free - _stored([each.target for each in node.generators])
        for each in ast.iter_child_nodes(node):
            if not isinstance(each, ast.comprehension):
                yield each, inner
                continue
            yield each.iter, free if each is node.generators[0] else inner
            yield from ((test, inner) for test in each.ifs)
    elif isinstance(node, ast.ClassDef):  # functions in it do not see what it binds
        yield from ((each, free) for each in ast.iter_child_nodes(node))
    else:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                bound = _stored([node.target]) if isinstance(node, ast.For) else set()
                yield from _block(value, free - bound)
            elif isinstance(value, list):
                yield from ((each, free) for each in value if isinstance(each, ast.AST))
            elif isinstance(value, ast.AST):
                yield value, free


def _block(statements: Iterable[ast.stmt], free: frozenset[str]) -> Iterator[_Place]:
    """Yield statements, each without what those before it have bound."""
    for statement in statements:
        yield statement, free
        free -= _bound_by(statement)


def _stored(nodes: list[Any]) -> set[str]:
    """Return the names that are bound in a scope; those moved out of it do not count."""
    stored, moved = set(), set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                stored.add(name)
            case ast.Global() | ast.Nonlocal():
                moved.update(node.names)
        if not isinstance(node, (_FUNCTIONS, _COMPREHENSIONS, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return stored - moved


def _bound_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of the module has surely bound when it has run."""
    match statement:
        case ast.Assign(targets=targets):
            return _stored(targets)
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.For(target=target):
            return _stored([target])
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name.partition(".")[0] for alias in aliases}
    return set()
