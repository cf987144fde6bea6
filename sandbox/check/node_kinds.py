"""What every kind of syntax node holds, on Python 3.11 to 3.14 (docs.python.org, `ast`).

A line for kinds that hold the same: fields that hold nodes, fields that hold identifiers with what
these are there, fields that hold neither. A kind or a filled field that is not here is unknown, and
the checker refuses it: syntax of a new Python stays out until it is added here and judged in
`sandbox/check/checker.py`.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from sandbox.check.source import normalised

__all__ = ["KINDS", "Kind", "Nodes", "by_identifier", "by_kind", "walk"]

_KINDS = """
Module: body | | type_ignores

FunctionDef: decorator_list type_params args returns body | name=definition | type_comment
AsyncFunctionDef: decorator_list type_params args returns body | name=definition | type_comment
ClassDef: decorator_list type_params bases keywords body | name=bound |
Delete: targets | |
Assign: targets value | | type_comment
TypeAlias: name type_params value | |
AugAssign: target op value | |
AnnAssign: target annotation value | | simple
For AsyncFor: target iter body orelse | | type_comment
While: test body orelse | |
If IfExp: test body orelse | |
With AsyncWith: items body | | type_comment
Match: subject cases | |
Raise: exc cause | |
Try TryStar: body handlers orelse finalbody | |
Assert: test msg | |
Import: names | |
ImportFrom: names | module=module | level
Global Nonlocal: | names=bound |
Expr Return Await Yield YieldFrom: value | |
Pass Break Continue: | |

BoolOp: op values | |
NamedExpr: target value | |
BinOp: left op right | |
UnaryOp: op operand | |
Lambda: args body | |
Dict: keys values | |
Set: elts | |
ListComp SetComp GeneratorExp: elt generators | |
DictComp: key value generators | |
Compare: left ops comparators | |
Call: func args keywords | |
FormattedValue: value format_spec | | conversion
Interpolation: value format_spec | | str conversion
JoinedStr TemplateStr: values | |
Constant: | | value kind
Attribute: value | attr=attribute | ctx
Subscript: value slice | | ctx
Starred: value | | ctx
Name: | id=variable | ctx
List Tuple: elts | | ctx
Slice: lower upper step | |

And Or: | |
Add Sub Mult MatMult Div Mod Pow LShift RShift BitOr BitXor BitAnd FloorDiv: | |
Invert Not UAdd USub: | |
Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn: | |

comprehension: target iter ifs | | is_async
ExceptHandler: type body | name=bound |
arguments: posonlyargs args vararg kwonlyargs kw_defaults kwarg defaults | |
arg: annotation | arg=parameter | type_comment
keyword: value | arg=keyword |
alias: | name=module asname=alias |
withitem: context_expr optional_vars | |
match_case: pattern guard body | |

MatchValue: value | |
MatchSingleton: | | value
MatchSequence MatchOr: patterns | |
MatchMapping: keys patterns | rest=bound |
MatchClass: cls patterns kwd_patterns | kwd_attrs=pattern |
MatchStar: | name=bound |
MatchAs: pattern | name=bound |

TypeVar: bound default_value | name=type_parameter |
ParamSpec TypeVarTuple: default_value | name=type_parameter |
"""


Nodes = Mapping[type, Sequence[Any]]


class Kind(NamedTuple):
    """What nodes of one kind hold, on the running Python."""

    held: Callable[[Any], Iterable[Any]]  # returns nodes, lists of nodes, and None for none
    identifiers: tuple[tuple[str, str], ...]  # fields, each with what an identifier is there
    unknown: tuple[str, ...]  # fields


def _getter(fields: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    """Return what gets these fields of a node; getters written in C are what makes a walk quick."""
    if not fields:
        return lambda _: ()
    get = attrgetter(*fields)
    return get if len(fields) > 1 else lambda node: (get(node),)


def _table() -> dict[type, Kind]:
    table = {}
    for line in filter(None, _KINDS.splitlines()):
        names, _, fields = line.partition(":")
        nodes, identifiers, others = (part.split() for part in fields.split("|"))
        roles = dict(one.split("=") for one in identifiers)
        for name in names.split():
            kind = getattr(ast, name, None)  # some are newer than the running Python
            if kind is not None:
                held = [field for field in nodes if field in kind._fields]
                known = {*nodes, *roles, *others}
                unknown = tuple(field for field in kind._fields if field not in known)
                table[kind] = Kind(_getter(held), tuple(roles.items()), unknown)
    return table


KINDS = _table()


def walk(tree: ast.AST) -> list[Any]:
    """Return the nodes of a tree, each followed by all that it holds; of unknown kinds, it alone.

    Iterative: a program may nest deeper than Python recurses.
    """
    nodes = []
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        kind = node.__class__
        if kind is list:
            todo += node
        elif node is not None:
            nodes.append(node)
            if kind in KINDS:
                todo += KINDS[kind].held(node)
    return nodes


def by_kind(nodes: Iterable[Any]) -> Nodes:
    """Return nodes by their kind."""
    found: dict[type, list[Any]] = defaultdict(list)
    for node in nodes:
        found[node.__class__].append(node)
    return found


def by_identifier(nodes: Iterable[Any], field: str) -> Mapping[str, Sequence[Any]]:
    """Return nodes by the identifiers in a field, as Python reads them; without those of none."""
    found: dict[str, list[Any]] = defaultdict(list)
    for node in nodes:
        value = getattr(node, field)
        if value.__class__ is str:
            found[value].append(node)
        else:
            for name in value or ():
                found[name].append(node)
    for name in [name for name in found if not name.isascii()]:
        holders = found.pop(name)
        found[normalised(name)] += holders
    return found
