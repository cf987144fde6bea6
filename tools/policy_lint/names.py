"""Rules of dangerous_names, dangerous_attrs, allowed_dunders: what is unknown, what is missing."""

import builtins
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

from sandbox.policy.loader import Policy, did_you_mean
from tools.policy_lint.finding import Finding, Rule
from tools.policy_lint.subject import Subject

NAME_UNKNOWN = Rule(
    "name-unknown",
    "error",
    "A dangerous name that names nothing",
    "It is no builtin and nothing that an allowed module holds, so it protects from nothing; the "
    "name that was meant is open.",
    "- evl",
    "Correct it, or delete it.",
)
NAME_MISSING = Rule(
    "name-missing",
    "error",
    "A builtin that opens files, runs code or reads by text is not refused",
    "With one of these a program gets around every other check.",
    "dangerous_names without open",
    "Add it to dangerous_names.",
)
NAME_UNJUDGED = Rule(
    "name-unjudged",
    "warning",
    "A builtin of this interpreter that nobody has judged",
    "A new Python may bring a builtin that runs code.",
    "a builtin that Python 3.20 adds",
    "Add it to dangerous_names until it is judged.",
)
ATTR_UNKNOWN = Rule(
    "attr-unknown",
    "error",
    "A dangerous attribute that nothing has",
    "No module, class or object that a program can reach has it, so it protects from nothing; the "
    "attribute that was meant is open.",
    "- gi_fram",
    "Correct it, or delete it.",
)
ATTR_MISSING = Rule(
    "attr-missing",
    "error",
    "An attribute that leads out of the program is not refused",
    "Frames lead to the globals and builtins of whoever calls; others read attributes by text, "
    "evaluate text, or are modules.",
    "dangerous_attrs without f_back",
    "Add it to dangerous_attrs.",
)
DUNDER_UNKNOWN = Rule(
    "dunder-unknown",
    "error",
    "An allowed method that Python never calls",
    "It is no special method of the language; the one that was meant stays refused.",
    "- __inti__",
    "Correct it, or delete it.",
)
DUNDER_UNSAFE = Rule(
    "dunder-unsafe",
    "error",
    "An allowed method that changes what other code does or sees",
    "It runs when an object dies, is copied, or has any attribute read, also in code that is not "
    "the program's.",
    "- __getattribute__",
    "Delete it.",
)
RULES = {
    rule.id: rule
    for rule in (
        NAME_UNKNOWN,
        NAME_MISSING,
        NAME_UNJUDGED,
        ATTR_UNKNOWN,
        ATTR_MISSING,
        DUNDER_UNKNOWN,
        DUNDER_UNSAFE,
    )
}

# Why each name must be refused, whatever the interpreter.
_NAMES = {
    "runs code": "__import__ breakpoint compile eval exec",
    "opens files or the terminal": "copyright credits help license open",
    "ends the interpreter": "exit quit",
    "reads or writes attributes by text": "attrgetter delattr getattr methodcaller setattr",
    "hands out a namespace": "builtins dir globals locals vars",
    "shows raw memory": "memoryview",
    "evaluates text or reads attributes by text": (
        "Formatter singledispatch singledispatchmethod update_wrapper"
    ),
}
_ATTRS = {
    "runs code": "eval exec",
    "reads or sets attributes by text, or evaluates text": (
        "Formatter UserDict UserList UserString _add_member_ _attr_type _cls_type _convert_"
        " _evaluate _get_mixins_ attrgetter delattr format_map getattr methodcaller partialmethod"
        " setattr singledispatch singledispatchmethod statistics.itemgetter update_wrapper vformat"
    ),
    "leads to the classes behind a value": "mro",
    "leads to code, namespaces or classes, where a text spells it": (
        "__annotations__ __base__ __bases__ __builtins__ __class__ __closure__ __code__"
        " __context__ __defaults__ __dict__ __func__ __getattribute__ __globals__ __import__"
        " __kwdefaults__ __loader__ __match_args__ __module__ __mro__ __objclass__ __prepare__"
        " __reduce__ __reduce_ex__ __self__ __spec__ __subclasses__ __traceback__ __wrapped__"
    ),
    "shows the inside of a frame, generator or function, on another version of Python": (
        "ag_suspended co_branches cr_suspended f_generator func_code func_globals gi_suspended"
    ),
}
_INTROSPECTION = (
    types.FrameType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.TracebackType,
    types.CodeType,
)
_PREFIXES = ("f_", "gi_", "cr_", "ag_", "tb_", "co_", "func_")
# Of other versions of Python than the one that lints.
_ELSEWHERE = "co_lnotab func_closure func_defaults func_dict func_doc func_name itemgetter"
_JUDGED = (
    "abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict"
    " divmod enumerate filter float format frozenset hasattr hash hex id input int isinstance"
    " issubclass iter len list map max min next object oct ord pow print property range repr"
    " reversed round set slice sorted staticmethod str sum super tuple type zip"
)
_UNSAFE_DUNDERS = (
    "__builtins__ __class__ __code__ __closure__ __del__ __delattr__ __dict__ __getattr__"
    " __getattribute__ __getinitargs__ __getnewargs__ __getnewargs_ex__ __getstate__ __globals__"
    " __import__ __init_subclass__ __instancecheck__ __loader__ __mro__ __mro_entries__"
    " __prepare__ __reduce__ __reduce_ex__ __setattr__ __setstate__ __spec__ __subclasscheck__"
    " __subclasses__ __subclasshook__ __traceback__"
)
# Special methods that object and the builtin types have not.
_MORE_DUNDERS = (
    "__aenter__ __aexit__ __aiter__ __anext__ __await__ __bytes__ __cause__ __complex__"
    " __copy__ __deepcopy__ __delete__ __enter__ __exit__ __get__ __ifloordiv__ __imatmul__"
    " __imod__ __ipow__ __irshift__ __ilshift__ __itruediv__ __length_hint__ __matmul__"
    " __missing__ __post_init__ __rmatmul__ __set__ __set_name__ __slots__ __match_args__"
)


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """What is missing from the three lists, and methods that are unknown or unsafe."""
    for field, rule, needed, listed in (
        ("dangerous_names", NAME_MISSING, _needed(_NAMES), policy.dangerous_names),
        ("dangerous_attrs", ATTR_MISSING, _needed_attrs(), policy.dangerous_attrs),
    ):
        for name in sorted(needed.keys() - listed):
            if name.rpartition(".")[0] not in {"", *policy.allowed_imports}:
                continue
            message = f"{field} lacks {name}, which {needed[name]}"
            yield subject.at_heading(rule, field, message, f"add `- {name}`", name)
    judged = {*policy.dangerous_names, *_JUDGED.split(), *_needed(_NAMES)}
    for name in sorted(set(dir(builtins)) - judged):
        if callable(getattr(builtins, name)) and name[0].islower():
            message = f"{name} is a builtin of this interpreter that nobody has judged"
            yield subject.at_heading(
                NAME_UNJUDGED, "dangerous_names", message, f"add `- {name}`", name
            )
    unsafe, known = set(_UNSAFE_DUNDERS.split()), _dunders()
    for name in sorted(policy.allowed_dunders):
        if name in unsafe:
            message = f"{name} acts in code that is not the program's"
            yield subject.at_entry(DUNDER_UNSAFE, "allowed_dunders", name, message, "delete it")
        elif name not in known:
            cure = did_you_mean(name, known, "delete it")
            message = f"{name} is no special method"
            yield subject.at_entry(DUNDER_UNKNOWN, "allowed_dunders", name, message, cure)


def find_unknown(subject: Subject, policy: Policy, answer: dict[str, Any]) -> Iterator[Finding]:
    """Names and attributes that nothing has; `answer` is what a guest saw in the modules."""
    reachable = _reachable(answer["names"])
    for field, rule, needed in (
        ("dangerous_names", NAME_UNKNOWN, _needed(_NAMES)),
        ("dangerous_attrs", ATTR_UNKNOWN, _needed_attrs()),
    ):
        for entry, _ in subject.entries(field):
            module, _, name = entry.rpartition(".")
            if name not in reachable:
                cure = did_you_mean(name, needed, did_you_mean(name, reachable, "delete it"))
                yield subject.at_entry(rule, field, entry, f"nothing is called {name}", cure)
            elif module and module not in {*policy.allowed_imports, *sys.stdlib_module_names}:
                message = f"{module} is not in allowed_imports"
                cure = did_you_mean(module, policy.allowed_imports, "delete it")
                yield subject.at_entry(rule, field, entry, message, cure)


def _needed(table: dict[str, str]) -> dict[str, str]:
    return {name: why for why, names in table.items() for name in names.split()}


def _needed_attrs() -> dict[str, str]:
    """Why each attribute must be refused; the interpreter's own introspection included."""
    insides = {
        name: f"shows the inside of a {kind.__name__}"
        for kind in _INTROSPECTION
        for name in dir(kind)
        if name.startswith(_PREFIXES)
    }
    return _needed(_ATTRS) | insides


def _reachable(names: Iterable[str]) -> set[str]:
    """Names that something has: what a guest saw, and what the standard library holds here."""
    modules = {*sys.modules} & sys.stdlib_module_names
    holders: list[object] = [*_INTROSPECTION, *map(sys.modules.get, modules)]
    holders += [
        kind
        for name in modules
        for kind in vars(sys.modules[name]).values()
        if isinstance(kind, type)
    ]
    found = {name for holder in holders for name in dir(holder)} | sys.stdlib_module_names
    return found.union(names, _ELSEWHERE.split(), _needed(_ATTRS), _needed(_NAMES))


def _dunders() -> set[str]:
    kinds = [value for value in vars(builtins).values() if isinstance(value, type)]
    found = {name for kind in kinds for name in dir(kind) if name.startswith("__")}
    return (found | set(_MORE_DUNDERS.split())) - set(_UNSAFE_DUNDERS.split())
