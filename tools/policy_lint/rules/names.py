"""Rules of dangerous_names, dangerous_attrs and allowed_dunders that need no guest.

name-missing (error): A builtin that is not known to be harmless is not refused
    Some open files, run code or read attributes by text, and get around every other check. A new
    version of Python may bring more.
    Example: dangerous_names without open
    Cure: Add it to dangerous_names.

attr-missing (error): An attribute that leads out of the program is not refused
    Frames lead to the globals and builtins of whoever calls; others read attributes by text,
    evaluate text, or are modules.
    Example: dangerous_attrs without f_back
    Cure: Add it to dangerous_attrs.

dunder-unknown (error): An allowed method that Python never calls
    It is no special method of the language; the one that was meant stays refused.
    Example: - __inti__
    Cure: Correct it, or delete it.

dunder-unsafe (error): An allowed method that changes what other code does or sees
    It runs when an object dies, is pickled, or has any attribute read, also in code that is not
    the program's.
    Example: - __getattribute__
    Cure: Delete it.
"""

import builtins
import types
from collections.abc import Iterator

from sandbox.check.checker import check as violations
from sandbox.policy.document import Finding
from sandbox.policy.loader import Policy
from sandbox.policy.mistakes import did_you_mean
from tools.policy_lint.known import HARMLESS, KNOWN, REVEALING
from tools.policy_lint.subject import Subject

INTROSPECTION = (
    types.FrameType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.TracebackType,
    types.CodeType,
)
_PREFIXES = ("f_", "gi_", "cr_", "ag_", "tb_", "co_")
# Kinds whose attributes with two underscores lead to code, namespaces or classes.
_LEADING = (types.FunctionType, types.MethodType, types.WrapperDescriptorType, type, BaseException)
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_METHODS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)


def check(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """What is missing from two lists, and methods that are unknown or unsafe."""
    for name in sorted(_unjudged_builtins() - policy.dangerous_names):
        message = f"dangerous_names lacks the builtin {name}, which is not known to be harmless"
        if name == "builtins":
            message = "dangerous_names lacks builtins, the namespace of everything that it refuses"
        yield subject.finding(
            "name-missing", ("dangerous_names",), message, f"add `- {name}`", name
        )
    for name, why in sorted(_insides().items()):
        program = f"'{name}'" if name.startswith("__") else f"x.{name}"
        if name not in policy.dangerous_attrs and not violations(program, policy):
            message, cure = f"dangerous_attrs lacks {name}, which {why}", f"add `- {name}`"
            yield subject.finding("attr-missing", ("dangerous_attrs",), message, cure, name)
    unsafe = set(KNOWN["names"]["unsafe"].split())
    known = _special_methods() - unsafe
    for name in subject.entries("allowed_dunders"):
        at = ("allowed_dunders", name)
        if name in unsafe:
            message = f"{name} acts in code that is not the program's"
            yield subject.finding("dunder-unsafe", at, message, "delete it")
        elif name not in known:
            meant = KNOWN["renamed"].get(name)
            cure = f"did you mean {meant}?" if meant else did_you_mean(name, known, "delete it")
            yield subject.finding("dunder-unknown", at, f"{name} is no special method", cure)


def _unjudged_builtins() -> set[str]:
    return {"__import__", "builtins"} | {
        name
        for name in {*dir(builtins)} - HARMLESS
        if name[0].islower() and callable(getattr(builtins, name))
    }


def _insides() -> dict[str, str]:
    """Why each attribute of any value must be refused, on this interpreter."""
    dull = KNOWN["names"]["dull"].split()
    spelt = {
        name: f"leads out of a {kind.__name__} where a text spells it"
        for kind in (*_LEADING, object)
        for name, value in vars(kind).items()
        if name.startswith("__") and isinstance(value, _DESCRIPTORS) and name not in dull
    }
    shown = {
        name: f"shows the inside of a {kind.__name__}"
        for kind in INTROSPECTION
        for name in dir(kind)
        if name.startswith(_PREFIXES)
    }
    return REVEALING | spelt | shown


def _special_methods() -> set[str]:
    kinds = [kind for kind in vars(builtins).values() if isinstance(kind, type)]
    return set(KNOWN["names"]["more_methods"].split()) | {
        name
        for kind in (*kinds, *INTROSPECTION)
        for name, value in vars(kind).items()
        if name.startswith("__") and isinstance(value, _METHODS)
    }
