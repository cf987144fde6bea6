"""An exception as Python's own console words it, in a line each: the error, its notes, its chain.

Reads what a program may have made: whatever raises or lies on the way must not matter.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    import types
    from collections.abc import Iterable, Iterator
    from typing import Any

PROGRAM_NAME = "<program>"

_MOST_CHARACTERS = 2000  # of one text
MOST_LINES = 12
# As in CPython's Python/suggestions.c.
_MOST_CANDIDATES, _LONGEST_NAME, _MOVE_COST, _CASE_COST = 750, 40, 2, 1

# The class's own, whatever its metaclass says of it.
_qualname: Any = type.__dict__["__qualname__"].__get__
_module: Any = type.__dict__["__module__"].__get__


def describe(error: BaseException, *, has_lines: bool) -> str:
    """Return the lines that say what was raised, each with its line in the program if `has_lines`.

    The first one is the error itself; what it came from and what it holds follow.
    """
    lines: list[str] = []
    for line in _lines(error, has_lines, "", set()):
        lines.append(line)
        if len(lines) == MOST_LINES:
            break
    return "\n".join(lines)


def _lines(error: BaseException, has_lines: bool, before: str, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    yield before + _one_line(error, has_lines)
    indent = " " * (len(before) - len(before.lstrip()))
    try:
        notes = [str(note) for note in getattr(error, "__notes__", ())]
        cause, context = error.__cause__, error.__context__
        is_hidden = error.__suppress_context__
        members = list(error.exceptions) if isinstance(error, BaseExceptionGroup) else []
    except BaseException:  # the program's own class may do anything
        return
    yield from (indent + _flat(note) for note in notes)
    for member in members:
        if isinstance(member, BaseException) and id(member) not in seen:
            yield from _lines(member, has_lines, f"{indent}  - ", seen)
    if cause is not None and id(cause) not in seen:
        yield from _lines(cause, has_lines, f"{indent}caused by ", seen)
    elif context is not None and not is_hidden and id(context) not in seen:
        yield from _lines(context, has_lines, f"{indent}while handling ", seen)


def _one_line(error: BaseException, has_lines: bool) -> str:
    kind = type(error)
    module, name = _module(kind), str(_qualname(kind))
    if type(module) is str and module not in ("builtins", "__main__"):
        name = f"{module}.{name}"
    try:
        if isinstance(error, SyntaxError):
            text, line = str(error.msg), error.lineno
        else:
            text, line = str(error), _line_of(error)
        text = _flat(text).removesuffix(" (unknown location)") + _suggestion(error)
    except BaseException as second:  # the program's own exception class may do anything
        text, line = f"({_qualname(type(second))} in its text)", None
    message = f"{name}: {text}" if text else name
    return f"{message} (line {line})" if line is not None and has_lines else message


def _flat(text: str) -> str:
    return " ".join(text.split("\n"))[:_MOST_CHARACTERS]


def _line_of(error: BaseException) -> int | None:
    lines = [
        traceback.tb_lineno
        for traceback in _tracebacks(error)
        if traceback.tb_frame.f_code.co_filename == PROGRAM_NAME
    ]
    return lines[-1] if lines else None


def _tracebacks(error: BaseException) -> Iterator[types.TracebackType]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _suggestion(error: BaseException) -> str:
    """Return `. Did you mean: 'name'?` for a name that is nearly one that there is, else ""."""
    if not isinstance(error, NameError | AttributeError) or type(error.name) is not str:
        return ""
    name = error.name
    if isinstance(error, AttributeError):
        near = _nearest(name, dir(error.obj))
    else:
        frame = [traceback.tb_frame for traceback in _tracebacks(error)][-1]
        scopes = frame.f_locals, frame.f_globals, frame.f_builtins
        near = next(filter(None, (_nearest(name, list(scope)) for scope in scopes)), None)
    return f". Did you mean: '{near}'?" if near else ""


def _nearest(name: str, candidates: Iterable[Any]) -> str | None:
    """Return the first of the names that differ least, at most by a third of their characters."""
    names = [one for one in candidates if type(one) is str and one != name]
    if len(name) > _LONGEST_NAME or len(names) >= _MOST_CANDIDATES:
        return None
    best, least = None, len(name) * _MOVE_COST
    for one in names:
        most = min((len(one) + len(name) + 3) * _MOVE_COST // 6, least - 1)
        if len(one) <= _LONGEST_NAME and (cost := _distance(name, one)) <= most:
            best, least = one, cost
    return best


def _distance(a: str, b: str) -> int:
    """Return the Levenshtein distance in the costs above."""
    row = [index * _MOVE_COST for index in range(len(b) + 1)]
    for x in a:
        diagonal, row[0] = row[0], row[0] + _MOVE_COST
        for index, y in enumerate(b, 1):
            change = 0 if x == y else _CASE_COST if x.lower() == y.lower() else _MOVE_COST
            cost = min(diagonal + change, row[index - 1] + _MOVE_COST, row[index] + _MOVE_COST)
            diagonal, row[index] = row[index], cost
    return row[-1]
