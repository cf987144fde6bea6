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
from sandbox.policy.loader import did_you_mean
from tools.policy_lint.modules import HARMLESS, REVEALING
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
_UNSAFE_NAMES = (
    "__builtins__ __class__ __code__ __closure__ __del__ __delattr__ __dict__ __getattr__"
    " __getattribute__ __getinitargs__ __getnewargs__ __getnewargs_ex__ __getstate__ __globals__"
    " __import__ __init_subclass__ __instancecheck__ __loader__ __mro__ __mro_entries__"
    " __prepare__ __reduce__ __reduce_ex__ __setattr__ __setstate__ __spec__ __subclasscheck__"
    " __subclasses__ __subclasshook__ __traceback__"
)
_UNSAFE = frozenset(_UNSAFE_NAMES.split())
# What a class body may define and the builtin types do not.
_MORE_NAMES = (
    "__aenter__ __aexit__ __bytes__ __complex__ __copy__ __deepcopy__ __delete__ __enter__ __exit__"
    " __fspath__ __get__ __ifloordiv__ __imatmul__ __imod__ __ipow__ __irshift__ __ilshift__"
    " __itruediv__ __length_hint__ __match_args__ __matmul__ __missing__ __post_init__ __replace__"
    " __rmatmul__ __set__ __set_name__ __slots__"
)
_MORE = frozenset(_MORE_NAMES.split())
_RENAMED = {
    "__cmp__": "__lt__",
    "__div__": "__truediv__",
    "__getslice__": "__getitem__",
    "__idiv__": "__itruediv__",
    "__long__": "__int__",
    "__nonzero__": "__bool__",
    "__rdiv__": "__rtruediv__",
    "__unicode__": "__str__",
}
# Kinds whose attributes with two underscores lead to code, namespaces or classes; and those of
# these attributes that hold text or a number.
_LEADING = (types.FunctionType, types.MethodType, types.WrapperDescriptorType, type, BaseException)
_DULL_NAMES = (
    "__abstractmethods__ __basicsize__ __cause__ __dictoffset__ __doc__ __flags__ __itemsize__"
    " __name__ __qualname__ __suppress_context__ __text_signature__ __type_params__"
    " __weakrefoffset__"
)
_DULL = frozenset(_DULL_NAMES.split())
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_METHODS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)


def check(subject: Subject) -> Iterator[Finding]:
    """What is missing from two lists, and methods that are unknown or unsafe."""
    policy = subject.policy
    assert policy
    for name in sorted({*dir(builtins)} - HARMLESS - policy.dangerous_names):
        is_function = callable(getattr(builtins, name)) and name.lstrip("_")[0].islower()
        if is_function and (not name.startswith("_") or name == "__import__"):
            message = f"dangerous_names lacks the builtin {name}, which is not known to be harmless"
            cure = f"add `- {name}`"
            yield subject.at_heading("name-missing", "dangerous_names", message, cure, name)
    if "builtins" not in policy.dangerous_names:
        message = "dangerous_names lacks builtins, the namespace of everything that it refuses"
        cure = "add `- builtins`"
        yield subject.at_heading("name-missing", "dangerous_names", message, cure, "builtins")
    for name, why in sorted(_insides().items()):
        program = f"'{name}'" if name.startswith("__") else f"x.{name}"
        if name not in policy.dangerous_attrs and not violations(program, policy):
            message = f"dangerous_attrs lacks {name}, which {why}"
            cure = f"add `- {name}`"
            yield subject.at_heading("attr-missing", "dangerous_attrs", message, cure, name)
    known = _special_methods()
    for name, _ in subject.entries("allowed_dunders"):
        if name in _UNSAFE:
            message = f"{name} acts in code that is not the program's"
            yield subject.at_entry("dunder-unsafe", "allowed_dunders", name, message, "delete it")
        elif name not in known:
            meant = _RENAMED.get(name)
            cure = f"did you mean {meant}?" if meant else did_you_mean(name, known, "delete it")
            message = f"{name} is no special method"
            yield subject.at_entry("dunder-unknown", "allowed_dunders", name, message, cure)


def _insides() -> dict[str, str]:
    """Why each attribute of any value must be refused, on this interpreter."""
    spelt = {
        name: f"leads out of a {kind.__name__} where a text spells it"
        for kind in (*_LEADING, object)
        for name, value in vars(kind).items()
        if name.startswith("__") and isinstance(value, _DESCRIPTORS) and name not in _DULL
    }
    return (
        REVEALING
        | spelt
        | {
            name: f"shows the inside of a {kind.__name__}"
            for kind in INTROSPECTION
            for name in dir(kind)
            if name.startswith(_PREFIXES)
        }
    )


def _special_methods() -> set[str]:
    kinds = [kind for kind in vars(builtins).values() if isinstance(kind, type)]
    kinds += INTROSPECTION
    found = {
        name
        for kind in kinds
        for name, value in vars(kind).items()
        if name.startswith("__") and isinstance(value, _METHODS)
    }
    return (found | _MORE) - _UNSAFE
