"""What every kind of syntax node holds, on Python 3.11 to 3.14 (docs.python.org, `ast`).

One line a kind: fields that hold nodes, fields that hold identifiers, fields that hold neither.
A kind or a filled field that is not here is unknown, and the checker refuses it: syntax of a new
Python stays out until its line is added here and it is judged in `sandbox/check/checker.py`.
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

FunctionDef: decorator_list type_params args returns body | name | type_comment
AsyncFunctionDef: decorator_list type_params args returns body | name | type_comment
ClassDef: decorator_list type_params bases keywords body | name |
Return: value | |
Delete: targets | |
Assign: targets value | | type_comment
TypeAlias: name type_params value | |
AugAssign: target op value | |
AnnAssign: target annotation value | | simple
For: target iter body orelse | | type_comment
AsyncFor: target iter body orelse | | type_comment
While: test body orelse | |
If: test body orelse | |
With: items body | | type_comment
AsyncWith: items body | | type_comment
Match: subject cases | |
Raise: exc cause | |
Try: body handlers orelse finalbody | |
TryStar: body handlers orelse finalbody | |
Assert: test msg | |
Import: names | |
ImportFrom: names | module | level
Global: | names |
Nonlocal: | names |
Expr: value | |
Pass: | |
Break: | |
Continue: | |

BoolOp: op values | |
NamedExpr: target value | |
BinOp: left op right | |
UnaryOp: op operand | |
Lambda: args body | |
IfExp: test body orelse | |
Dict: keys values | |
Set: elts | |
ListComp: elt generators | |
SetComp: elt generators | |
DictComp: key value generators | |
GeneratorExp: elt generators | |
Await: value | |
Yield: value | |
YieldFrom: value | |
Compare: left ops comparators | |
Call: func args keywords | |
FormattedValue: value format_spec | | conversion
Interpolation: value format_spec | | str conversion
JoinedStr: values | |
TemplateStr: values | |
Constant: | | value kind
Attribute: value | attr | ctx
Subscript: value slice | | ctx
Starred: value | | ctx
Name: | id | ctx
List: elts | | ctx
Tuple: elts | | ctx
Slice: lower upper step | |

And: | |
Or: | |
Add: | |
Sub: | |
Mult: | |
MatMult: | |
Div: | |
Mod: | |
Pow: | |
LShift: | |
RShift: | |
BitOr: | |
BitXor: | |
BitAnd: | |
FloorDiv: | |
Invert: | |
Not: | |
UAdd: | |
USub: | |
Eq: | |
NotEq: | |
Lt: | |
LtE: | |
Gt: | |
GtE: | |
Is: | |
IsNot: | |
In: | |
NotIn: | |

comprehension: target iter ifs | | is_async
ExceptHandler: type body | name |
arguments: posonlyargs args vararg kwonlyargs kw_defaults kwarg defaults | |
arg: annotation | arg | type_comment
keyword: value | arg |
alias: | name asname |
withitem: context_expr optional_vars | |
match_case: pattern guard body | |

MatchValue: value | |
MatchSingleton: | | value
MatchSequence: patterns | |
MatchMapping: keys patterns | rest |
MatchClass: cls patterns kwd_patterns | kwd_attrs |
MatchStar: | name |
MatchAs: pattern | name |
MatchOr: patterns | |

TypeVar: bound default_value | name |
ParamSpec: default_value | name |
TypeVarTuple: default_value | name |
"""


Nodes = Mapping[type, Sequence[Any]]


class Kind(NamedTuple):
    """What nodes of one kind hold, on the running Python."""

    held: Callable[[Any], Iterable[Any]]  # returns nodes, lists of nodes, and None for none
    identifiers: tuple[str, ...]  # fields
    unknown: tuple[str, ...]  # fields


def _nothing(_: object) -> tuple[()]:
    return ()


def _getter(fields: Sequence[str]) -> Callable[[Any], Iterable[Any]]:
    """Return what gets these fields of a node; getters written in C are what makes a walk quick."""
    if not fields:
        return _nothing
    get = attrgetter(*fields)
    return get if len(fields) > 1 else lambda node: (get(node),)


def _table() -> dict[type, Kind]:
    table = {}
    for line in filter(None, _KINDS.splitlines()):
        name, _, fields = line.partition(":")
        kind = getattr(ast, name, None)  # some are newer than the running Python
        if kind is not None:
            nodes, identifiers, others = (part.split() for part in fields.split("|"))
            known = {*nodes, *identifiers, *others}
            table[kind] = Kind(
                _getter([field for field in nodes if field in kind._fields]),
                tuple(identifiers),
                tuple(field for field in kind._fields if field not in known),
            )
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
