"""Runs in a guest, unchecked: what programs can reach from the allowed modules by attributes.

Read as text and sent as a program, with a last line that prints `answer(question)` as JSON. A
question has `modules` (with the names that each gives), `closed` (attributes that the policy
refuses), `names` (that it refuses) and `outside` (modules whose classes and functions reach outside
the process).
"""

import builtins
import operator
import sys
import types
from typing import Any

Question = dict[str, Any]

_HOPS = 3
_CODE_MAKERS = (types.FunctionType, types.CodeType, types.ModuleType, types.FrameType)


def _attributes(thing: object) -> dict[str, object]:
    """What can be read by a dot: of an object also what its class and its bases hold."""
    holders: list[object] = [thing]
    if isinstance(thing, type):
        holders = list(thing.__mro__)
    elif not isinstance(thing, types.ModuleType):
        holders += type(thing).__mro__
    found: dict[str, object] = {}
    for holder in reversed(holders):
        found.update(getattr(holder, "__dict__", {}))
    return found


def _dangerous(question: Question) -> list[tuple[object, str]]:
    """The objects behind the refused names; pairs, for not all of them can be keys."""
    found: list[tuple[object, str]] = [(kind, kind.__name__) for kind in _CODE_MAKERS]
    for name in question["names"]:
        homes = [home for home in (builtins, operator) if hasattr(home, name)]
        found += [(getattr(home, name), name) for home in homes]
    return found


def _reach(
    start: str, module: object, question: Question, names: set[str]
) -> tuple[list[object], list[object]]:
    """Paths to modules that are not allowed, and paths to objects as bad as those."""
    modules: list[object] = []
    objects: list[object] = []
    dangerous = _dangerous(question)
    seen = {id(module)}
    waiting: list[tuple[list[str], object]] = [([start], module)]
    for path, thing in waiting:
        for name, value in _attributes(thing).items():
            names.add(name)
            if name.startswith("_") or not {name, f"{start}.{name}"}.isdisjoint(question["closed"]):
                continue
            here = [*path, name]
            if isinstance(value, types.ModuleType) and not value.__name__.startswith(f"{start}."):
                if value.__name__ not in question["modules"]:
                    modules.append([here, value.__name__])
                continue
            known = [what for bad, what in dangerous if bad is value]
            home = str(getattr(value, "__module__", None))
            if known:
                objects.append([here, known[0]])
            elif callable(value) and home.partition(".")[0] in question["outside"]:
                objects.append([here, f"{home}.{getattr(value, '__name__', name)}"])
            if id(value) not in seen and len(here) <= _HOPS:
                seen.add(id(value))
                waiting.append((here, value))
    return modules, objects


def answer(question: Question) -> dict[str, object]:
    """Modules and objects that are open, each with its path; all names seen; what is missing."""
    names: set[str] = set()
    modules: list[object] = []
    objects: list[object] = []
    missing: dict[str, str] = {}
    make_views = sys.modules["sandbox.fork_server.module_views"].module_views
    for start, gives in question["modules"].items():
        try:
            views = make_views({start: gives}, frozenset(question["closed"]))
            found = _reach(start, views[start], question, names)
        except BaseException as error:  # whatever a module does when it is imported
            missing[start] = f"{type(error).__name__}: {error}"
            continue
        modules += found[0]
        objects += found[1]
    return {"modules": modules, "objects": objects, "missing": missing, "names": sorted(names)}
