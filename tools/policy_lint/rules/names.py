"""Rules of dangerous_names, dangerous_attrs and allowed_dunders that need no guest.

honest-refused (error): A benign program is refused
    Names and attributes are tried on a list of programs as people write them, and on Python's own
    vocabulary: harmless builtins, methods of the builtin types, what allowed modules give.
    Example: dangerous_names with print
    Cure: Delete the entry.

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
from dataclasses import replace

from sandbox.check.checker import check as violations
from sandbox.policy.mistakes import did_you_mean
from tools.policy_lint.known import BENIGN, HARMLESS, KNOWN, REVEALING
from tools.policy_lint.program import origin
from tools.policy_lint.subject import Findings, Policy, Subject

INTROSPECTION = (
    types.FrameType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.TracebackType,
    types.CodeType,
)
_TYPES = (str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range)
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


def check(subject: Subject, policy: Policy) -> Findings:
    """What two lists refuse and should not, what they lack, and methods unknown or unsafe."""
    yield from _honest_refused(subject, policy)
    for name in sorted(_unjudged_builtins() - policy.dangerous_names):
        message = f"dangerous_names lacks the builtin {name}, which is not known to be harmless"
        if name == "builtins":
            message = "dangerous_names lacks builtins, the namespace of everything that it refuses"
        cure = f"add `- {name}`"
        yield subject.finding("name-missing", ("dangerous_names",), message, cure, name)
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


def _honest_refused(subject: Subject, policy: Policy) -> Findings:
    """Entries that refuse a benign program or a part of the language."""
    methods = {name: kind for kind in _TYPES for name in dir(kind) if name[0] != "_"}
    ordinary = HARMLESS | {*policy.allowed_imports}
    if not policy.limits.input_bytes:
        ordinary -= {"input"}
    refused = {("dangerous_names", name): name for name in policy.dangerous_names & ordinary}
    for name in policy.dangerous_attrs & (methods.keys() - REVEALING.keys()):
        refused["dangerous_attrs", name] = f"{methods[name].__name__}.{name}"
    wordless = replace(policy, blocked_words=())  # these have a rule of their own
    for source in BENIGN:
        for violation in violations(source, wordless):
            field, entry = origin(violation, wordless)
            if field in {"dangerous_names", "dangerous_attrs"} and entry:
                line = source.split("\n")[violation.line - 1].strip()
                refused.setdefault((field, entry), line)
    for at, shown in refused.items():
        message = f"{at[1]} refuses honest programs, such as {shown}"
        yield subject.finding("honest-refused", at, message, "delete it")


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
