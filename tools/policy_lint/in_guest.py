"""Runs in a guest, unchecked: what programs can reach from the allowed modules by attributes.

Read as text and sent as a program, with a last line that prints `answer(question)`.
"""

import builtins
import sys
import types

from sandbox.fork_server.module_views import module_views

TYPE_CHECKING = False  # as in typing, which a policy may not have: guests import what is there
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

_HOPS = 3
_CODE_MAKERS = (types.FunctionType, types.CodeType, types.ModuleType, types.FrameType)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What is open and what is refused in the modules that a policy allows.

    A question has `given` (each module with the names that it gives, None for the public ones),
    `attrs` and `names` (refused), `harmless` (builtins), `by_text` (functions, by module) and
    `outside` (modules whose classes and functions reach outside the process). The answer has
    `open`: paths with what they lead to; `refused`: an attribute and a path that it closes;
    `missing`: modules that cannot be imported, with the error; `seen` and `near`: those of the
    refused names that something has, and names that look like the others.
    """
    views, missing = _views(question["given"], frozenset(question["attrs"]))
    reach = _Reach(question)
    for start, view in views.items():
        if start in question["given"]:
            reach.walk(start, view)
    wanted = {name.rpartition(".")[2] for name in (*question["attrs"], *question["names"])}
    unseen = wanted - reach.names
    near = {one for one in reach.names if any(_is_like(one, other) for other in unseen)}
    return {
        "open": reach.open,
        "refused": reach.refused,
        "missing": missing,
        "seen": sorted(wanted & reach.names),
        "near": sorted(near)[:200],
    }


def _views(given: dict[str, Any], closed: frozenset[str]) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        return dict(module_views(given, closed)), {}
    except BaseException:  # one by one, to find those that are to blame
        views: dict[str, Any] = {}
        missing = {}
        for name, names in given.items():
            try:
                views |= module_views({name: names}, closed)
            except BaseException as error:  # whatever a module does when it is imported
                missing[name] = f"{type(error).__name__}: {error}"[:300]
        return views, missing


def _is_like(one: str, other: str) -> bool:
    return abs(len(one) - len(other)) < 3 and one[:1].lower() == other[:1].lower()


def _attributes(thing: object) -> dict[str, object]:
    """What can be read by a dot: of an object also what its class and its bases hold."""
    holders: list[object] = [thing]
    if isinstance(thing, type):
        holders = list(type.mro(thing))
    elif not isinstance(thing, types.ModuleType):
        holders += type(thing).__mro__
    found: dict[str, object] = {}
    for holder in reversed(holders):
        found.update(getattr(holder, "__dict__", {}))
    return found


class _Reach:
    def __init__(self, question: dict[str, Any]) -> None:
        self.question = question
        self.closed = {*question["attrs"]}
        self.modules = {name.rpartition(".")[2] for name in sys.modules}
        self.names: set[str] = set(dir(builtins))
        self.open: list[Any] = []
        self.refused: dict[str, str] = {}
        self.dangerous = [(kind, kind.__name__) for kind in _CODE_MAKERS]
        for name, value in vars(builtins).items():
            if callable(value) and name not in question["harmless"] and name[0].islower():
                self.dangerous.append((value, name))

    def walk(self, start: str, view: Any) -> None:
        """Follow the attributes of a module's view to what programs must not have."""
        by_text = self.question["by_text"].get(start, ())
        seen = {id(view)}
        waiting: list[tuple[list[str], object]] = [([start], view)]
        for path, thing in waiting:
            for name, value in _attributes(thing).items():
                self.names.add(name)
                if name.startswith("__"):
                    continue
                here = [*path, name]
                what = self.what(value) or ("a way by text" if value_is(here, by_text) else "")
                if not {name, f"{start}.{name}"}.isdisjoint(self.closed):
                    if not what and len(here) <= _HOPS and self.is_ordinary(start, name, value):
                        self.refused.setdefault(name, ".".join(here))
                elif what:
                    self.open.append([here, what])
                elif id(value) not in seen and len(here) <= _HOPS:
                    seen.add(id(value))
                    waiting.append((here, value))

    def is_ordinary(self, start: str, name: str, value: object) -> bool:
        """Whether a refused attribute is a public function of the module or of a class in it."""
        holder = getattr(value, "__objclass__", value)  # a method of a class in C has no module
        is_own = getattr(holder, "__module__", "") == start
        is_public = not name.startswith("_") and name not in self.modules
        return callable(value) and is_own and is_public

    def what(self, value: object) -> str:
        """What an object is that no program should have; empty for others."""
        if isinstance(value, types.ModuleType):
            name = value.__name__
            return "" if name in self.question["given"] or _is_view(value) else f"the module {name}"
        for bad, what in self.dangerous:
            if bad is value:
                return what
        home = str(getattr(value, "__module__", None))
        if callable(value) and home.partition(".")[0] in self.question["outside"]:
            return f"{home}.{getattr(value, '__name__', value)}"
        return ""


def _is_view(module: types.ModuleType) -> bool:
    return type(module) is not types.ModuleType


def value_is(path: list[str], by_text: Any) -> bool:
    """Whether a path is that of a module's own function that works by text."""
    return len(path) == 2 and path[1] in by_text
