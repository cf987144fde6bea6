"""Rules of allowed_imports and preloaded: what programs may import.

import-missing (error): An allowed module that this interpreter does not have
    The zygote imports every allowed module when it starts, so the bot would not start; without one
    that is no part of Python it would not serve the programs that need libraries.
    Example: - statistic
    Cure: Correct the name, install the package, or delete the entry.

import-impure (error): An allowed module that is more than computation
    It gives a program files, the network, processes, reflection or native code. The kernel's layers
    still hold then, but the checker no longer stands before them. A module whose functions are
    computation for the most part may be given in part: `- copy: [copy]`.
    Example: - pathlib
    Cure: Delete the entry; or accept it in place with the reason why it is worth it.

import-twice (warning): A module that is given both as a whole and in part
    The whole is in force, so the entry with names restricts nothing.
    Example: - time: [time]
    Cure: Delete one of the two.

import-unreviewed (warning): An allowed module outside the standard library that nobody has judged
    Its functions may read files or run code although its attributes expose no module.
    Example: - mypackage
    Cure: Read what it does, then accept it in place with what you found.

preloaded-shadows (warning): A preloaded name that hides a builtin
    Programs that use the builtin would find a module instead, and fail.
    Example: preloaded: {sum: math}
    Cure: Choose another name.

preloaded-unusable (error): A preloaded name that no program may use
    The policy itself refuses the name, so that what it holds can never be reached.
    Example: preloaded: {attrgetter: operator}
    Cure: Choose another name, or delete the line.
"""

import builtins
import difflib
from collections.abc import Iterator

from tools.policy_lint.modules import exists, gives_beyond, is_library, is_trusted, pure
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """Modules that are missing or impure, and preloaded names that are of no use."""
    for at, module in subject.document.strings("allowed_imports"):
        for rule, message, cure in _faults(
            module, policy, is_part=(*at, module) in subject.document.keys
        ):
            yield subject.finding(rule, at, message, cure, module)
    for name in policy.preloaded:
        at = ("preloaded", name)
        is_dunder = name.startswith("__")
        if is_dunder or name in policy.dangerous_names:
            closed = "as all with two underscores" if is_dunder else "by dangerous_names"
            message = f"{name} may not be used by any program: it is refused, {closed}"
            cure = "choose another name, or delete it"
            yield subject.finding("preloaded-unusable", at, message, cure)
        elif hasattr(builtins, name):
            message = f"{name} is a builtin, which programs would no longer find"
            cure = "delete it, or choose another name"
            yield subject.finding("preloaded-shadows", at, message, cure)


def _faults(module: str, policy: Policy, *, is_part: bool) -> Iterator[tuple[str, str, str]]:
    """Rule, message and cure of what is wrong with an entry for a module."""
    names = policy.allowed_imports[module]
    what = gives_beyond(module, names)
    if names is None and is_part:
        message = f"{module} stands here in part, and as a whole on another line"
        yield "import-twice", message, "delete one of the two: the whole is in force"
    if what:
        cure = "delete it, or accept it: # accept import-impure: REASON"
        yield "import-impure", f"{module} gives programs {what}", cure
    if not exists(module):
        yield "import-missing", f"this interpreter has no module {module}", _cure(module)
    elif not what and not is_trusted(module, names):
        message = f"{module} is not in the standard library, and its functions are not judged"
        cure = "accept it when you have read it: # accept import-unreviewed: REASON"
        yield "import-unreviewed", message, cure


def _cure(missing: str) -> str:
    if is_library(missing):
        return "lint it where the libraries are: MATHS=1 tools/policy-lint FILE; or delete it"
    package, _, name = missing.rpartition(".")
    if package and exists(package):
        return f"write `- {package}`, or `- {package}: [{name}]` for this name alone; or delete it"
    near = difflib.get_close_matches(missing.lower(), pure(), n=1, cutoff=0.82)
    return f"did you mean {near[0]}?" if near else "install it or delete the entry"
