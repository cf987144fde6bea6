"""What modules are to a program: pure computation, or more than that; there, or not."""

import functools
import sys
from collections.abc import Iterable
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path

from sandbox.policy.libraries import is_standard
from tools.policy_lint.known import KNOWN

_ROOT = Path(__file__).resolve().parents[2]
_FILELESS = {"__main__", "collections.abc", "os.path"}  # there, as another module has made them
_GIVES: dict[str, str] = {
    name: what for what, names in KNOWN["gives"].items() for name in names.split()
}
# What reaches outside the process; an object made there is as bad as the module.
OUTSIDE = sorted(
    name
    for what in ("files", "the network", "processes, threads and signals")
    for name in KNOWN["gives"][what].split()
)


def gives(module: str) -> str | None:
    """What a module gives beyond computation, by its own name, its package's or its public one."""
    steps = module.split(".")
    for count in range(len(steps), 0, -1):
        package = ".".join(steps[:count])
        if what := _GIVES.get(package) or _GIVES.get(package.lstrip("_")):
            return what
    is_private = any(step.startswith("_") for step in steps)
    return "the interpreter's insides" if is_private and is_standard(module) else None


def gives_beyond(module: str, names: Iterable[str] | None) -> str | None:
    """What an entry of allowed_imports gives beyond computation: a module, or names of it."""
    what = gives(module)
    half = KNOWN["halves"].get(module)
    if what is None or names is None or half is None:
        return what
    listed, is_denied = set(half.lstrip("-").split()), half.startswith("-")
    bad = [name for name in names if name.startswith("_") or (name in listed) == is_denied]
    return f"{what}, by {bad[0]}" if bad else None


def is_library(module: str) -> bool:
    """Whether a module is of the libraries that function/maths.txt brings."""
    return module.partition(".")[0] in KNOWN["names"]["libraries"].split()


def is_trusted(module: str, names: Iterable[str] | None) -> bool:
    """Whether an entry is known to do nothing but compute, also while it is imported."""
    return is_standard(module) and gives_beyond(module, names) is None


@functools.cache
def exists(module: str) -> bool:
    """Whether there is a module, by its file: nothing is imported, no parent package either.

    It is looked for where the zygote does: neither here nor in the current folder.
    """
    if module in _FILELESS:
        return True
    path: list[str] | None = [p for p in sys.path if p and Path(p).resolve() != _ROOT]
    steps = module.split(".")
    for count in range(1, len(steps) + 1):
        name = ".".join(steps[:count])
        spec = PathFinder.find_spec(name, path)
        if count == 1 and spec is None:
            spec = BuiltinImporter.find_spec(name) or FrozenImporter.find_spec(name)
        if spec is None:
            return False
        path = list(spec.submodule_search_locations or ())
    return True


def pure() -> set[str]:
    """The standard library's modules that give nothing but computation."""
    return {
        name for name in sys.stdlib_module_names if not name.startswith("_") and gives(name) is None
    }
