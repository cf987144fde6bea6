"""Runs in a guest, unchecked: what any program may do, and what it can reach from the modules.

Read as text and sent as a program, whose last line calls `exercise`, or prints the `answer`.
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
_USES = {
    "datetime": "datetime.strptime('2024-02-29', '%Y-%m-%d').astimezone()",
    "decimal": "Decimal(2).sqrt()",
    "json": "loads(dumps({'a': [1, 2.5, None]}))",
    "random": "random()",
    "re": "findall(r'[0-9]+', '1 a 22')",
    "statistics": "median([1, 2, 9])",
}


def exercise(modules: list[str]) -> None:
    """Do what any program may do, as far as it has the modules."""
    nested: list[Any] = []
    for _ in range(20_000):
        nested = [nested]
    try:
        print(repr(nested)[:1])
    except RecursionError as error:
        print(error)

    def down(n: int) -> int:
        return n and 1 + down(n - 1)

    print(down(500), sorted(range(1000), key=lambda n: -n)[:2], f"{3.14159:.2f}", "é" * 100)
    print(len(str(7**5000)), len(bytes(40 << 20)))
    for name in modules:
        __import__(name)
        if name in _USES:
            eval(_USES[name], vars(sys.modules[name]))  # nosec B307  a text of this file


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What is open and what is refused in the modules that a policy allows.

    A question has `given` (each module with the names that it gives, None for the public ones),
    `attrs` and `names` (refused), `builtins` (not harmless), `by_text` (functions, by module) and
    `outside` (modules whose classes and functions reach outside the process). The answer has
    `open`: paths with what they lead to; `refused`: an attribute and a path that it closes;
    `missing`: modules that cannot be imported, with the error; `lacking`: the names that a module
    should give and has not, and those that it has besides; `seen`: those of the refused names that
    something has.
    """
    views, missing = _views(question["given"], frozenset(question["attrs"]))
    reach = _Reach(question)
    for start in views.keys() & question["given"].keys():
        reach.walk(start, views[start])
    wanted = {name.rpartition(".")[2] for name in (*question["attrs"], *question["names"])}
    return {
        "open": reach.open,
        "refused": reach.refused,
        "missing": missing,
        "lacking": _lacking({name: question["given"].get(name) for name in views}),
        "seen": sorted(wanted & reach.names),
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


def _lacking(given: dict[str, Any]) -> dict[str, Any]:
    lacking = {}
    for module, names in given.items():
        has = {*dir(sys.modules[module])}
        if not has.issuperset(names or ()):
            lacking[module] = sorted({*names} - has), sorted(has.difference(names))
    return lacking


def _holders(thing: object) -> list[object]:
    """Whose attributes can be read by a dot: of an object also those of its class and the bases."""
    if isinstance(thing, types.ModuleType):
        return [thing]
    return list(type.mro(thing)) if isinstance(thing, type) else [thing, *type(thing).__mro__]


class _Reach:
    def __init__(self, question: dict[str, Any]) -> None:
        self.question = question
        self.closed = {*question["attrs"]}
        self.names: set[str] = set(dir(builtins))
        self.open: list[Any] = []
        self.refused: dict[str, str] = {}
        self.dangerous = {id(kind): kind.__name__ for kind in _CODE_MAKERS}
        for name in vars(builtins).keys() & question["builtins"]:
            self.dangerous[id(getattr(builtins, name))] = name

    def walk(self, start: str, view: Any) -> None:
        """Follow the attributes of a module's view to what programs must not have."""
        given = self.question["given"][start]
        left_out = {  # of the view
            name: value
            for name, value in vars(sys.modules[start]).items()
            if name in self.closed and (given is None or name in given)
        }
        walked: set[int] = set()
        waiting: list[tuple[list[str], object]] = [([start], view)]
        waiting.append(([start], types.SimpleNamespace(**left_out)))
        for path, thing in waiting:
            for holder in _holders(thing):
                if id(holder) in walked:
                    continue
                walked.add(id(holder))
                for name, value in getattr(holder, "__dict__", {}).items():
                    self.names.add(name)
                    here = [*path, name]
                    if name[:2] != "__" and self.leads_on(here, value) and len(here) <= _HOPS:
                        waiting.append((here, value))

    def leads_on(self, path: list[str], value: object) -> bool:
        """Note what is open or refused there; whether neither is."""
        start, name = path[0], path[-1]
        what = self.what(value)
        if len(path) == 2 and name in self.question["by_text"].get(start, "").split():
            what = what or "a way by text"
        if {name, f"{start}.{name}"}.isdisjoint(self.closed):
            if what:
                self.open.append([path, what])
            return not what
        self.names.update(getattr(value, "__dict__", ()))
        if not what and len(path) <= _HOPS and _is_own_function(value, name, start):
            self.refused.setdefault(name, ".".join(path))
        return False

    def what(self, value: object) -> str:
        """What an object is that no program should have; empty for others."""
        if isinstance(value, types.ModuleType):
            is_view = type(value) is not types.ModuleType
            is_given = is_view or value.__name__ in self.question["given"]
            return "" if is_given else f"the module {value.__name__}"
        if id(value) in self.dangerous:
            return self.dangerous[id(value)]
        home = str(getattr(value, "__module__", None))
        if callable(value) and home.partition(".")[0] in self.question["outside"]:
            return f"{home}.{getattr(value, '__name__', value)}"
        return ""


def _is_own_function(value: object, name: str, module: str) -> bool:
    """Whether an attribute is a public function of a module or of a class in it."""
    holder = getattr(value, "__objclass__", value)  # a method of a class in C has no module
    home = str(getattr(holder, "__module__", ""))  # _heapq, of a function in C of heapq
    return callable(value) and name[0] != "_" and home.lstrip("_") == module
