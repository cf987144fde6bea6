"""Read-only views of the modules that a program may import, made once, before the fork.

A module holds what it imports as plain attributes (`random._os`), and its functions look up their
helpers in it, so that to set one is to change the library. A program is given views instead: the
public names, or those that the policy gives, no other module, and nothing to set or delete.
"""

from __future__ import annotations

import types

from sandbox.fork_server import stand_ins

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_namespace: Any = vars(types.ModuleType)["__dict__"].__get__


class View(types.ModuleType, metaclass=stand_ins.Sealed):
    """A module's names as a module that cannot be changed; it has no file and no loader."""

    __slots__ = ()
    __module__ = "builtins"

    @property
    def __dict__(self) -> Mapping[str, object]:  # type: ignore[override]
        return types.MappingProxyType(_namespace(self))

    def __dir__(self) -> list[str]:
        return sorted(_namespace(self))

    def __setattr__(self, name: str, *_: object) -> None:
        raise AttributeError(f"the module {self.__name__} may not be changed here")

    __delattr__: Any = __setattr__


type.__setattr__(View, "__name__", "module")  # as programs know the class


def module_views(
    given: Mapping[str, Collection[str] | None], closed: Collection[str]
) -> dict[str, View]:
    """Import modules and return their views by name, with those of the packages that they are in.

    `given` has for each module the names that it gives, None for its public ones but for `closed`.
    A package that is not given itself has a view that holds its submodules alone.
    """
    modules = {name: stand_ins.lean_import(name) for name in given}
    stand_ins.install(closed)
    views = {name: View(name, module.__doc__) for name, module in modules.items()}
    made = {id(module): views[name] for name, module in modules.items()}
    for name, module in modules.items():
        names = given[name]
        _fill(module, _public(module, closed) if names is None else names, closed, made)
        space = _namespace(views[name])
        for one in stand_ins.REPLACED.get(name, {}).keys() & space.keys():
            space[one] = stand_ins.REPLACED[name][one]
    for name in sorted(views, reverse=True):  # submodules before their packages
        package, _, last = name.rpartition(".")
        if package:
            _namespace(views.setdefault(package, View(package)))[last] = views[name]
    return views


def _public(module: types.ModuleType, closed: Collection[str]) -> list[str]:
    names = getattr(module, "__all__", None) or vars(module)
    dotted = {name for name in names if f"{module.__name__}.{name}" in closed}
    return [one for one in names if one[:1] != "_" and one not in closed and one not in dotted]


def _fill(
    module: types.ModuleType,
    names: Collection[str],
    closed: Collection[str],
    made: dict[int, View],
) -> None:
    """Put a module's names into its view. Of modules, those that have a view, and submodules."""
    space = _namespace(made[id(module)])
    for name in names:
        value = getattr(module, name, None)  # some names are newer than the running Python
        if isinstance(value, types.ModuleType):
            if id(value) not in made and value.__name__.startswith(f"{module.__name__}."):
                made[id(value)] = View(value.__name__, value.__doc__)
                _fill(value, _public(value, closed), closed, made)
            value = made.get(id(value))
        if value is not None:
            space[name] = value
    space["__all__"] = tuple(name for name in names if name in space)
