"""Which texts surely are a program's own literals, so that their `.format` reads no attribute.

`row.format(x)` passes where `row` is bound only to such literals: by an assignment, a loop over a
table of them, or a parameter that every call in the text gives one. Whatever else binds it, or
holds the table or the function otherwise than to read or call it, makes it unsure.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sandbox.check.literals import is_plain_text
from sandbox.check.node_kinds import Nodes
from sandbox.check.scopes import Binding, Bindings

__all__ = ["Templates"]

_TABLES = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_READERS = frozenset({"get", "items", "keys", "values"})  # methods that leave a table as it is


class Templates:
    """Answers for one program. What depends on itself alone is never bound, so it is sure."""

    def __init__(self, nodes: Nodes, bound: Bindings, is_sure: Callable[[ast.AST], bool]) -> None:
        self._nodes = nodes
        self._bound = bound
        self._is_sure = is_sure
        self._known: dict[object, bool] = {}

    def is_plain(self, node: Any) -> bool:
        """Tell whether an expression surely is a literal whose `.format` reads no attribute."""
        match node:
            case ast.Name(id=name):
                return self._is_sure(node) and self._once(name, self._is_plain_name)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_plain(body) and self.is_plain(orelse)
            case ast.Subscript(value=table, slice=key):
                return not isinstance(key, ast.Slice) and self._holds_plain(table)
            case _:
                return self._once(node, is_plain_text)

    def _once(self, key: Any, judge: Callable[[Any], bool]) -> bool:
        if key not in self._known:
            self._known[key] = True
            self._known[key] = judge(key)
        return self._known[key]

    def _is_plain_name(self, name: str) -> bool:
        bound = self._bound.get(name, ())
        return bool(bound) and all(map(self._is_plain_binding, bound))

    def _is_plain_binding(self, binding: Binding) -> bool:
        node, value = binding
        if isinstance(value, ast.expr):
            return self.is_plain(value)
        if isinstance(node, ast.arg):
            given = self._arguments.get(node)
            return bool(given) and all(map(self.is_plain, given or ()))
        return node in self._loops and self._holds_plain(self._loops[node])

    def _holds_plain(self, table: ast.expr) -> bool:
        """Tell whether all that a table holds is plain; of a dict, all of both sides."""
        match table:
            case ast.Dict(keys=keys, values=values):
                return all(map(self.is_plain, [*keys, *values]))
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
                return all(map(self.is_plain, elts))
            case ast.Name(id=name):
                return self._is_sure(table) and self._once((name,), self._is_plain_table)
            case ast.Call(func=ast.Attribute(value=value, attr="values"), args=[]):
                return self._holds_plain(value)
        return False

    def _is_plain_table(self, key: tuple[str]) -> bool:
        values = [one.value for one in self._bound.get(key[0], ())]
        are_tables = all(isinstance(one, _TABLES) and self._holds_plain(one) for one in values)
        return bool(values) and are_tables and self._uses[key[0]] <= self._readings

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
        found = {}
        for function in self._nodes.get(ast.FunctionDef, ()):
            its = calls[function.name]
            is_alone = len(self._bound[function.name]) == 1 and not function.decorator_list
            if (
                is_alone
                and self._is_sure(function)
                and self._uses[function.name] == {call.func for call in its}
            ):
                parameters, defaults = function.args.args, function.args.defaults
                for index, parameter in enumerate(parameters, -len(parameters)):
                    default = defaults[index] if -index <= len(defaults) else None
                    at = index + len(parameters)
                    found[parameter] = [_given(call, at, parameter.arg, default) for call in its]
        return found


def _given(call: ast.Call, index: int, name: str, default: ast.expr | None) -> ast.expr | None:
    """Return what a call gives a parameter, None if that cannot be told."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    named = {one.arg: one.value for one in call.keywords}
    if None in named:  # **options
        return None
    return call.args[index] if index < len(call.args) else named.get(name, default)
