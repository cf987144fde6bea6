"""Bounds what a regular expression costs to search for, or says why nothing bounds it.

Python's matcher backtracks, and no limit of processor time holds in the process that searches. So a
word is refused unless its structure shows that from each place of a text it takes few steps: along
each path at most one repetition without a bound, of one character, after something that this cannot
be, so that no two places read the same run. `/proc/\\d+/` is fine; `(a+)+;`, `\\w+\\s*;` and `.*x`
are not.
"""

import importlib
import re
import string
from collections.abc import Iterable
from typing import Any, NamedTuple

# Private, but the only parser of regular expressions that agrees with the one that runs them.
PARSER: Any = importlib.import_module("re._parser")
_COMPILER: Any = importlib.import_module("re._compiler")

ONE_CHARACTER = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY"})  # kinds of the parser's nodes
MOST_STEPS = 2000  # from one place of a text: on 16 KiB, 0.3 s at the worst
# One character of each kind that a set or category may tell apart.
_ALPHABET = string.printable + "\0\x85\xa0µßéſİ٣²Ωдא中ʰ\u0301\u200b\u2028K😀"
_NOT_WORDS = frozenset(re.findall(r"\W", _ALPHABET))
_Characters = frozenset[str]


class _Path(NamedTuple):
    """One past of a place in a pattern.

    How many ways lead here, of how many characters at most; the sets of characters of which one
    must have stood before; whether there was a repetition without a bound.
    """

    ways: int = 1
    length: int = 0
    before: frozenset[_Characters] = frozenset()
    has_run: bool = False


class Unbounded(Exception):
    """Nothing bounds how long a search for the word takes; the text says why."""


def cost(word: str) -> int:
    """Steps that a search takes from one place, at most. Raises Unbounded."""
    tree = PARSER.parse(word)
    return _steps(_follow(tree, [_Path()], tree.state.flags))


def _steps(paths: Iterable[_Path]) -> int:
    return sum(path.ways * (path.length + 1) for path in paths)


def _follow(nodes: Iterable[tuple[Any, Any]], paths: list[_Path], flags: int) -> list[_Path]:
    """The paths that lead on after `nodes`."""
    for name, argument in nodes:
        kind = str(name)
        if kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            least, most, body = argument
            paths = _repeated(least, most, body, paths, flags)
        elif kind == "BRANCH":
            paths = [path for branch in argument[1] for path in _follow(branch, paths, flags)]
        elif kind == "SUBPATTERN":
            _, added, removed, inner = argument
            paths = _follow(inner, paths, (flags | added) & ~removed)
        elif kind == "ATOMIC_GROUP":
            paths = _follow(argument, paths, flags)
        elif kind in {"ASSERT", "ASSERT_NOT"}:
            inside = _follow(argument[1], paths, flags)
            if kind == "ASSERT_NOT" or argument[0] > 0:  # only what a look behind saw stands before
                ways, has_run = sum(p.ways for p in inside), any(p.has_run for p in inside)
                inside = [path._replace(ways=ways, has_run=has_run) for path in paths]
            paths = inside
        elif kind == "AT":
            seen = {"AT_BOUNDARY": _NOT_WORDS, "AT_BEGINNING_STRING": frozenset[str]()}
            if not flags & re.MULTILINE:
                seen["AT_BEGINNING"] = frozenset()
            paths = [_after(path, seen.get(str(argument)), 0) for path in paths]
        elif kind in {"GROUPREF", "GROUPREF_EXISTS"}:
            raise Unbounded("what a back reference or condition does cannot be told beforehand")
        else:
            paths = [_after(path, _characters(name, argument, flags), 1) for path in paths]
        if _steps(paths) > MOST_STEPS:
            raise Unbounded(f"from one place of a text it may take more than {MOST_STEPS} steps")
    return paths


def _after(path: _Path, seen: _Characters | None, length: int) -> _Path:
    before = path.before if seen is None else path.before | {seen}
    return path._replace(before=before, length=path.length + length)


def _repeated(least: int, most: int, body: Any, paths: list[_Path], flags: int) -> list[_Path]:
    if most == PARSER.MAXREPEAT or most - least > MOST_STEPS:
        return _run(body, paths, flags)
    every = [] if least else paths
    for count in range(1, most + 1):
        paths = _follow(body, paths, flags)
        every = [*every, *paths] if count >= least else every
        if _steps(every) > MOST_STEPS:
            raise Unbounded(f"from one place of a text it may take more than {MOST_STEPS} steps")
    return every


def _run(body: Any, paths: list[_Path], flags: int) -> list[_Path]:
    """The paths after a repetition without a bound."""
    name, argument = body[0] if len(body) == 1 else ("", "")
    if str(name) not in ONE_CHARACTER:
        raise Unbounded("what is repeated without a bound is more than one character")
    repeated = _characters(name, argument, flags)
    for path in paths:
        if path.has_run:
            raise Unbounded("one repetition without a bound follows another")
        if all(seen & repeated for seen in path.before):
            raise Unbounded(
                "nothing stands before a repetition without a bound that this cannot match itself"
            )
    return [path._replace(has_run=True) for path in paths]


def _characters(name: Any, argument: Any, flags: int) -> _Characters:
    """The characters that a node of one character matches, of the alphabet and of its own."""
    if str(name) == "LITERAL" and not flags & re.IGNORECASE:
        return frozenset(chr(argument))
    own = [argument] if isinstance(argument, int) else []
    for kind, value in argument if isinstance(argument, list) else ():
        own += {"LITERAL": [value], "RANGE": value}.get(str(kind), ())
    node = PARSER.SubPattern(PARSER.parse("").state, [(name, argument)])
    pattern = _COMPILER.compile(node, flags & (re.IGNORECASE | re.DOTALL | re.ASCII))
    return frozenset(c for c in {*_ALPHABET, *map(chr, own)} if pattern.fullmatch(c))
