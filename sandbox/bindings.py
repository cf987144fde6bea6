"""How a program binds its names, as far as the text alone proves it.

A program may call a variable `dir` or `input`: harmless where every use is surely of its own
variable and never of the builtin. And `row.format(x)` is harmless where `row` surely is a literal.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.literals import literal_text, reads_attributes
from sandbox.syntax import KINDS, NO_FIELDS, children, descendants

# Kinds that bind their field `name`; type parameters are newer than Python 3.11.
_NAMED: Any = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler),
    *(ast.MatchAs, ast.MatchStar),
    *(
        getattr(ast, kind)
        for kind in ("TypeVar", "ParamSpec", "TypeVarTuple")
        if hasattr(ast, kind)
    ),
)
_BINDING = frozenset(
    (*_NAMED, ast.Assign, ast.Name, ast.arg, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
) | {ast.MatchMapping}
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


# Words that people name variables with. Other dangerous names are refused in every position.
ORDINARY_WORDS = frozenset(
    ("copyright", "credits", "dir", "exit", "help", "input", "license", "open", "quit", "vars")
)

# An expression (of a plain assignment), a dotted name (of an import), or None, which stands for all
# else (parameters, loops, functions, patterns, deletions).
Value = ast.expr | str | None
Values = Mapping[str, Sequence[Value]]


def bindings(tree: ast.AST) -> Values:
    """Return every name that a tree binds -> all it is bound to, in any scope and any order."""
    values: dict[str, list[Value]] = {}
    plain: set[ast.AST] = set()
    for node in _binding_nodes(tree):
        if node not in plain:
            for name, value in _bound_by(node):
                values.setdefault(name, []).append(value)
        if isinstance(node, ast.Assign):
            plain.update(node.targets)
    return values


def _binding_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that may bind a name; few do, and the rest must cost little."""
    for node in descendants(tree):
        if node.__class__ in _BINDING and node.__dict__.get("ctx").__class__ is not ast.Load:
            yield node


def _bound_by(node: ast.AST) -> Iterator[tuple[str, Value]]:
    """Yield the names that one node binds or moves to another scope, and to what."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((one.id, value) for one in targets if isinstance(one, ast.Name))
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name, None
        case ast.Import(names=aliases):
            for alias in aliases:
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or module, module
        case ast.ImportFrom(module=module, names=aliases):
            yield from ((alias.asname or alias.name, f"{module}.{alias.name}") for alias in aliases)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from ((name, None) for name in names)
        case ast.MatchMapping(rest=str(name)):
            yield name, None
        case _ if isinstance(node, _NAMED) and node.name is not None:
            yield node.name, None


def is_plain_text(name: str, values: Values) -> bool:
    """Tell whether a name is bound, and only to literals whose `.format` reads no attribute."""
    bound = values.get(name, ())
    texts = [literal_text(value) for value in bound if isinstance(value, ast.expr)]
    return (
        bool(bound)
        and len(texts) == len(bound)
        and not any(text is None or reads_attributes(text) for text in texts)
    )


def is_namedtuple(name: str, values: Values) -> bool:
    """Tell whether a name is bound, and only to classes that namedtuple makes."""
    bound = values.get(name, ())
    return bool(bound) and all(_makes_namedtuple(value, values) for value in bound)


def _makes_namedtuple(value: Value, values: Values) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return {*values.get(name, ())} == {"collections.namedtuple"}
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="namedtuple")):
            return {*values.get(name, ())} == {"collections"}
    return False


def own_occurrences(tree: ast.AST, wanted: set[str]) -> set[ast.AST]:
    """Return the Name and arg nodes of `wanted` names that are surely the program's own variables.

    A function's local name never falls back to a builtin (it raises UnboundLocalError). A global
    one does not after an assignment that every path to the use has passed, unless it is deleted.
    """
    wanted = wanted & _sure_bindings(tree)
    own: set[ast.AST] = set()
    todo: list[_Place] = [(tree, frozenset(), True)]
    while todo and wanted:
        node, names, is_global = todo.pop()
        kind = node.__class__
        if isinstance(node, ast.Name):
            if node.id in names:
                own.add(node)
        elif isinstance(node, _Function):
            todo += _inside_function(node, names, is_global, wanted, own)
        elif isinstance(node, _Comprehension):
            todo += _inside_comprehension(node, names, wanted)
        elif isinstance(node, ast.For) and is_global:
            targets = [name for name in _plain_names(node.target) if name.id in wanted]
            own.update(targets)
            bound = names.union(name.id for name in targets)
            todo += [(node.iter, names, True), *_block(node.orelse, names, wanted, own)]
            todo += _block(node.body, bound, wanted, own)
        else:
            for name in KINDS.get(kind, NO_FIELDS)[0]:
                held = getattr(node, name, None)
                if held.__class__ is not list:
                    todo.append((held, names, is_global))
                elif is_global and held and isinstance(held[0], ast.stmt):
                    todo += _block(held, names, wanted, own)
                else:
                    todo += [(part, names, is_global) for part in held]
    return own


# A node, the names that are surely own there, and whether it is in no function.
_Place = tuple[ast.AST | None, frozenset[str], bool]


def _block(
    statements: Sequence[ast.stmt], names: frozenset[str], wanted: set[str], own: set[ast.AST]
) -> Iterator[_Place]:
    """Yield global statements, each with the names that the ones before it have bound for good."""
    for statement in statements:
        yield statement, names, True
        bound: set[str] = set()
        match statement:
            case ast.Assign(targets=targets):
                plain = [name for target in targets for name in _plain_names(target)]
                own.update(name for name in plain if name.id in wanted)
                bound = {name.id for name in plain}
            case ast.AnnAssign(target=ast.Name() as name, value=ast.expr()):
                own.update({name} if name.id in wanted else ())
                bound = {name.id}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                bound = {statement.name}
        if not names >= bound & wanted:
            names = names | (bound & wanted)


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
    function: _Function,
    names: frozenset[str],
    is_global: bool,
    wanted: set[str],
    own: set[ast.AST],
) -> Iterator[_Place]:
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    own.update(one for one in parameters if one.arg in wanted)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    local = {one.arg for one in parameters} | _stored(body)
    yield arguments, names, is_global
    if not isinstance(function, ast.Lambda):
        yield function.returns, names, is_global
        yield from ((one, names, is_global) for one in function.decorator_list)
        if is_global and not function.decorator_list:
            local.add(function.name)  # bound before anybody can call it
    yield from ((one, names | (wanted & local), False) for one in body)


def _inside_comprehension(
    node: _Comprehension,
    names: frozenset[str],
    wanted: set[str],
) -> Iterator[_Place]:
    first = node.generators[0].iter  # the only part that is evaluated outside
    inner = names | (wanted & _stored([one.target for one in node.generators]))
    yield first, names, False
    for part in children(node):
        for piece in children(part) if isinstance(part, ast.comprehension) else [part]:
            if piece is not first:
                yield piece, inner, False


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
                todo += children(node)
    return stored


def _sure_bindings(tree: ast.AST) -> set[str]:
    """Return the bound names for which a proof is tried: not deleted, not moved between scopes."""
    bound: set[str] = set()
    shaken: set[str] = set()
    for node in _binding_nodes(tree):
        names = {name for name, _ in _bound_by(node)}
        match node:
            case ast.Assign() | ast.arg() | ast.FunctionDef() | ast.AsyncFunctionDef():
                bound |= names
            case ast.Name(ctx=ast.Store()):
                bound |= names
            case ast.ClassDef(body=body):  # what it has not bound yet is looked up outside
                shaken |= names | _stored(body)
            case _:
                shaken |= names
    return set() if "*" in shaken else bound - shaken
