"""Which texts surely are a program's own literals, so that their `.format` reads no attribute.

`row.format(x)` passes where `row` is bound only to such literals: by an assignment, a loop over a
table of them, or a parameter that every call in the text gives one. Whatever else binds it, or
holds the table or the function otherwise than to read or call it, makes it unsure.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sandbox.check.literals import is_plain_text
from sandbox.check.scopes import Scopes

# Who judges, and what: a text, a table of texts, or the name of one.
_Claim = tuple[Callable[[Any], Any], Any]
# What has to hold as well; None where the claim is false.
_Needs = list[_Claim] | None

_TABLES = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_READERS = frozenset({"get", "items", "keys", "values"})  # methods that leave a table as it is


class Templates:
    """Answers for one program. What depends on itself alone is never bound, so it is sure."""

    def __init__(self, scopes: Scopes) -> None:
        self._nodes = scopes.nodes
        self._scopes = scopes

    def unsure(self, texts: Iterable[ast.expr]) -> set[ast.expr]:
        """Return those of the expressions that may be other than a literal of the program.

        Iterative, and each part is judged once: a program may be a chain of a thousand names.
        """
        dependents: dict[_Claim, list[_Claim]] = defaultdict(list)
        claims: list[_Claim] = [(self._text, text) for text in texts]
        seen, refuted = {*claims}, []
        for claim in claims:
            needs = claim[0](claim[1])
            if needs is None:
                refuted.append(claim)
            for need in needs or ():
                dependents[need].append(claim)
                if need not in seen:
                    seen.add(need)
                    claims.append(need)
        false = set(refuted)
        while refuted:
            others = set(dependents[refuted.pop()]) - false
            false |= others
            refuted += others
        return {text for judge, text in false if judge == self._text}

    def _text(self, node: Any) -> _Needs:
        match node:
            case ast.Name(id=name):
                return [(self._name, name)] if self._scopes.is_sure(node) else None
            case ast.IfExp(body=body, orelse=orelse):
                return [(self._text, body), (self._text, orelse)]
            case ast.Subscript(value=table, slice=key) if not isinstance(key, ast.Slice):
                return [(self._table, table)]
            case _:
                return [] if is_plain_text(node) else None

    def _name(self, name: str) -> _Needs:
        needs: list[_Claim] = []
        for node, value in self._scopes.bound.get(name, ()):
            if isinstance(value, ast.expr):
                needs.append((self._text, value))
            elif node in self._loops:
                needs.append((self._table, self._loops[node]))
            elif self._arguments.get(node):
                needs += [(self._text, given) for given in self._arguments[node]]
            else:
                return None
        return needs or None

    def _table(self, table: Any) -> _Needs:
        """What a table holds: of a dict, both sides."""
        match table:
            case ast.Dict(keys=keys, values=values):
                return [(self._text, one) for one in (*keys, *values)]
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
                return [(self._text, one) for one in elts]
            case ast.Name(id=name):
                return [(self._table_name, name)] if self._scopes.is_sure(table) else None
            case ast.Call(func=ast.Attribute(value=value, attr="values"), args=[]):
                return [(self._table, value)]
        return None

    def _table_name(self, name: str) -> _Needs:
        values = [one.value for one in self._scopes.bound.get(name, ())]
        if not values or not all(isinstance(value, _TABLES) for value in values):
            return None
        return [(self._table, v) for v in values] if self._uses[name] <= self._readings else None

    @cached_property
    def _uses(self) -> Mapping[str, set[ast.AST]]:
        """The nodes that read each name."""
        uses: dict[str, set[ast.AST]] = defaultdict(set)
        for name in self._nodes.get(ast.Name, ()):
            if isinstance(name.ctx, ast.Load):
                uses[name.id].add(name)
        return uses

    @cached_property
    def _readings(self) -> set[ast.AST]:
        """The tables in `table[key]`, `for text in table` and `table.values()`."""
        nodes = self._nodes
        subscripts = nodes.get(ast.Subscript, ())
        found = {one.value for one in subscripts if isinstance(one.ctx, ast.Load)}
        found |= {one.iter for kind in (ast.For, ast.comprehension) for one in nodes.get(kind, ())}
        attributes = nodes.get(ast.Attribute, ())
        return found | {one.value for one in attributes if one.attr in _READERS}

    @cached_property
    def _loops(self) -> Mapping[ast.AST, ast.expr]:
        """The variables of loops -> what they go through."""
        kinds = (ast.For, ast.comprehension)
        return {one.target: one.iter for kind in kinds for one in self._nodes.get(kind, ())}

    @cached_property
    def _arguments(self) -> Mapping[ast.arg, Sequence[ast.expr | None]]:
        """The parameters of functions that are only called, by name -> all that they are given.

        None stands for what cannot be told.
        """
        calls: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self._nodes.get(ast.Call, ()):
            if isinstance(call.func, ast.Name):
                calls[call.func.id].append(call)
        found: dict[ast.arg, list[ast.expr | None]] = {}
        for function in self._nodes.get(ast.FunctionDef, ()):
            its = calls[function.name]
            if (
                not (function.decorator_list or function.args.posonlyargs)
                and len(self._scopes.bound[function.name]) == 1
                and self._scopes.is_sure(function)
                and self._uses[function.name] == {call.func for call in its}
                and not any(map(_is_unpacking, its))
            ):
                found |= _given(function.args, its)
        return found


def _is_unpacking(call: ast.Call) -> bool:
    """Tell whether a call gives `*values` or `**options`."""
    is_starred = any(isinstance(one, ast.Starred) for one in call.args)
    return is_starred or any(one.arg is None for one in call.keywords)


def _given(
    arguments: ast.arguments, calls: Sequence[ast.Call]
) -> dict[ast.arg, list[ast.expr | None]]:
    """Return what calls give each parameter: an argument or, once for all, the default."""
    parameters = arguments.args
    by_name = {one.arg: one for one in parameters}
    found: dict[ast.arg, list[ast.expr | None]] = {one: [] for one in parameters}
    for call in calls:
        named = {by_name[one.arg]: one.value for one in call.keywords if one.arg in by_name}
        for parameter, value in (named | dict(zip(parameters, call.args, strict=False))).items():
            found[parameter].append(value)
    defaults = [None] * (len(parameters) - len(arguments.defaults)) + arguments.defaults
    for parameter, default in zip(parameters, defaults, strict=True):
        if len(found[parameter]) < len(calls):
            found[parameter].append(default)
    return found
