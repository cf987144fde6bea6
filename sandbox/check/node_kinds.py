"""What every kind of syntax node holds, as `node_kinds.txt` has it: walks, finds identifiers."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.check.source import normalised

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
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    for line in text.splitlines():
        names, _, fields = line.partition("#")[0].partition(":")
        nodes, identifiers, others = (part.split() for part in (fields or "||").split("|"))
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
