"""Rules that are looked for in a guest: what programs reach, and names that nothing has.

import-exposes (error): An allowed module leads to one that is not allowed
    Modules hold the modules that they import as plain attributes: `statistics.sys` is sys, and
    `sys.modules` is everything; some functions read attributes by text, or run it. Found by
    importing in a guest, on this interpreter, and told at the module and where it could be refused.
    Example: allowed_imports with operator, dangerous_attrs without attrgetter
    Cure: Add the attribute to dangerous_attrs.

name-unknown (error): A dangerous name that names nothing
    It is no builtin and nothing that an allowed module holds, so it protects from nothing; the name
    that was meant is open.
    Example: - evl
    Cure: Correct it, or delete it.

attr-unknown (error): A dangerous attribute that nothing has
    No module, class or object that a program can reach has it, so it protects from nothing; the
    attribute that was meant is open.
    Example: - gi_fram
    Cure: Correct it, or delete it.

attr-refuses (error): A dangerous attribute that an allowed module gives for plain computation
    Programs that use the module as everybody does would be refused.
    Example: dangerous_attrs with now, which is datetime.datetime.now
    Cure: Delete the entry; or write it with its module: `statistics.itemgetter`.
"""

import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox.check.checker import check as violations
from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.document import Finding
from sandbox.policy.loader import did_you_mean
from tools.policy_lint.modules import HARMLESS, REVEALING
from tools.policy_lint.rules.names import INTROSPECTION
from tools.policy_lint.subject import Subject

# Of other versions of Python than the one that lints.
_ELSEWHERE_NAMES = (
    "__annotate__ _attr_type _cls_type"
    " ag_suspended bltns co_branches co_lnotab cr_suspended f_generator func_closure func_code"
    " func_defaults func_dict func_doc func_globals func_name gi_suspended itemgetter"
)
_ELSEWHERE = frozenset(_ELSEWHERE_NAMES.split())


def check(subject: Subject) -> Iterator[Finding]:
    """Open paths to what is not allowed; entries that refuse too much, or nothing."""
    for explored in ("explored", "explored_elsewhere"):
        try:
            answer = getattr(subject.guests, explored)
        except SandboxUnavailable as error:
            if explored == "explored_elsewhere":
                message = f"the other modules could not be explored: {error}"
                cure = "run the lint where a guest can import them"
                yield subject.at_heading("not-tried", "allowed_imports", message, cure)
            return  # what keeps guests from running is told by the rules of the boundary
        yield from _open(subject, answer["open"])
        for module, reason in answer["missing"].items():
            message = f"{module} cannot be imported: {reason}"
            cure = "install what it needs, or delete it"
            yield subject.at_entry("import-fails", "allowed_imports", module, message, cure)
        for name, path in answer["refused"].items():
            if name in REVEALING:
                continue
            message = f"{name} refuses honest programs, such as {path}"
            yield subject.at_entry("attr-refuses", "dangerous_attrs", name, message, "delete it")
    yield from _unknown(subject)


def _open(subject: Subject, paths: list[tuple[list[str], str]]) -> Iterator[Finding]:
    policy = subject.policy
    assert policy
    wordless = replace(policy, blocked_words=())  # what refuses is to be an attribute or a name
    for (start, *steps), what in paths:
        path = ".".join((start, *steps))
        if violations(f"import {start}\n{path}", wordless):
            continue
        message, cure = f"{path} is {what}, and nothing refuses it", f"add `- {steps[-1]}`"
        place = subject.place_of("allowed_imports", start)
        at, value = ("allowed_imports",), steps[-1]
        to_attrs = f"add {value} to dangerous_attrs"
        yield subject.finding("import-exposes", place, message, to_attrs, value, at)
        yield subject.at_heading("import-exposes", "dangerous_attrs", message, cure, value)


def _unknown(subject: Subject) -> Iterator[Finding]:
    policy, guests = subject.policy, subject.guests
    assert policy
    answers = (guests.explored, guests.explored_elsewhere)
    seen: set[str] = set().union(*(answer["seen"] for answer in answers))
    near: set[str] = set().union(*(answer["near"] for answer in answers))
    for field, rule in (("dangerous_names", "name-unknown"), ("dangerous_attrs", "attr-unknown")):
        for entry, _ in subject.entries(field):
            module, _, name = entry.rpartition(".")
            if name not in seen and name not in (known := _known()):
                wanted = known | near
                cure = did_you_mean(name, HARMLESS ^ wanted, "delete it")
                yield subject.at_entry(rule, field, entry, f"nothing is called {name}", cure)
            elif module and module not in {*policy.allowed_imports, *sys.stdlib_module_names}:
                message = f"{module} is not in allowed_imports"
                cure = did_you_mean(module, policy.allowed_imports, "delete it")
                yield subject.at_entry(rule, field, entry, message, cure)


@functools.cache
def _known() -> set[str]:
    """What the interpreter's own objects have, and the names of the standard library's modules."""
    holders: list[Any] = [*INTROSPECTION]
    holders += [sys.modules[name] for name in {*sys.modules} & sys.stdlib_module_names]
    holders += [k for holder in holders for k in vars(holder).values() if isinstance(k, type)]
    names = {name for holder in holders for name in dir(holder)} | {*_ELSEWHERE, *REVEALING}
    return names | sys.stdlib_module_names | _submodules()


def _submodules() -> set[str]:
    """The last names of modules in the standard library's packages, by their files."""
    library = Path(os.__file__).parent
    packages = (library / name for name in sys.stdlib_module_names - {"test", "idlelib"})
    return {file.stem for package in packages for file in package.glob("*.py")}
