"""Whether a program needs what a policy's libraries and its prelude bring."""

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def needs_libraries(tree: ast.Module, names: Collection[str]) -> bool:
    """Return whether a program imports a module that is not Python's own, or may find one of these
    names other than as its own variable.
    """
    mentioned = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                mentioned.add(name)
            case ast.Import(names=aliases):
                if any(_is_library(alias.name) for alias in aliases):
                    return True
            case ast.ImportFrom(module=str(module)) if _is_library(module):
                return True
    wanted = mentioned.intersection(names)
    if not wanted:
        return False
    todo = list(_block(tree.body, frozenset()))
    while todo:
        node, own = todo.pop()
        if isinstance(node, ast.Name) and node.id in wanted - own:
            if not isinstance(node.ctx, ast.Store):
                return True
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            if node.target.id in wanted - own:
                return True
            todo.append((node.value, own))
        else:
            todo += _inside(node, own)
    return False


# A node, and the names that are surely bound where it stands.
_Place = tuple[Any, frozenset[str]]


def _is_library(module: str) -> bool:
    return module.partition(".")[0] not in sys.stdlib_module_names


def _inside(node: Any, own: frozenset[str]) -> Iterator[_Place]:
    """Yield what a node holds."""
    if isinstance(node, _FUNCTIONS):
        yield node.args, own
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = own | _parameters(node) | _stored(body)
        if not isinstance(node, ast.Lambda):
            yield from ((each, own) for each in node.decorator_list)
            yield from ((each, own) for each in (node.returns,) if each)
            inner |= {node.name}
        yield from ((each, inner) for each in body)
    elif isinstance(node, _COMPREHENSIONS):
        first, *others = node.generators
        yield first.iter, own
        inner = own | _stored([each.target for each in node.generators])
        yield from ((each.iter, inner) for each in others)
        yield from ((test, inner) for each in node.generators for test in each.ifs)
        for each in ast.iter_child_nodes(node):
            if not isinstance(each, ast.comprehension):
                yield each, inner
    else:
        is_class = isinstance(node, ast.ClassDef)  # functions in it do not see what it binds
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                bound = own | _stored([node.target]) if isinstance(node, ast.For) else own
                yield from ((each, own) for each in value) if is_class else _block(value, bound)
            elif isinstance(value, list):
                yield from ((each, own) for each in value if isinstance(each, ast.AST))
            elif isinstance(value, ast.AST):
                yield value, own


def _block(statements: Iterable[ast.stmt], own: frozenset[str]) -> Iterator[_Place]:
    """Yield statements, each with what those before it have bound."""
    for statement in statements:
        yield statement, own
        own = own.union(_bound_by(statement))


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _stored(nodes: list[Any]) -> set[str]:
    """Return the names that are stored in a scope; those moved out of it do not count."""
    stored, moved = set(), set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            moved.update(node.names)
        if not isinstance(node, (_FUNCTIONS, _COMPREHENSIONS, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return stored - moved


def _bound_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of the module has surely bound when it has run."""
    match statement:
        case ast.Assign(targets=targets):
            return _stored(targets)
        case ast.AnnAssign(target=target, value=ast.expr()):
            return _stored([target])
        case ast.For(target=target):
            return _stored([target])
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name.partition(".")[0] for alias in aliases}
    return set()
