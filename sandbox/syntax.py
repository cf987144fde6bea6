"""What every kind of syntax node holds, on Python 3.11 to 3.14 (docs.python.org, `ast`).

One line a kind: fields that hold nodes, fields that hold identifiers, fields that hold neither.
A kind or a filled field that is not here is unknown, and the checker refuses it: syntax of a new
Python stays out until somebody has added its line here and judged it in `sandbox/checker.py`.
"""

import ast
from collections.abc import Iterator

__all__ = ["KINDS", "NO_FIELDS", "children", "descendants"]

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


# Names of fields: with nodes, with identifiers, unknown to this file.
Fields = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
NO_FIELDS: Fields = ((), (), ())


def _table() -> dict[type[object], Fields]:
    table: dict[type[object], Fields] = {}
    for line in filter(None, _KINDS.splitlines()):
        name, _, fields = line.partition(":")
        kind = getattr(ast, name, None)  # some are newer than the running Python
        if kind is not None:
            nodes, identifiers, others = (tuple(part.split()) for part in fields.split("|"))
            known = {*nodes, *identifiers, *others}
            unknown = tuple(field for field in kind._fields if field not in known)
            table[kind] = (nodes, identifiers, unknown)
    return table


KINDS = _table()


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes that a node of a known kind holds; none of an unknown kind."""
    held: list[ast.AST | None] = []
    for name in KINDS.get(node.__class__, NO_FIELDS)[0]:
        child = getattr(node, name, None)
        if child.__class__ is list:
            held += child
        else:
            held.append(child)
    return [child for child in held if child is not None]


def descendants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all beneath it, a node before those that it holds."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)
