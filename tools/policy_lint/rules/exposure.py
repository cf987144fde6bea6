"""Rules that are looked for in a guest: what programs reach, and names that nothing has.

import-exposes (error): An allowed module leads to one that is not allowed
    Modules hold the modules that they import as plain attributes: `statistics.sys` is sys, and
    `sys.modules` is everything; some functions read attributes by text, or run it. Found by
    importing in a guest, on this interpreter, and told at the module and where it could be refused.
    Example: allowed_imports with operator, dangerous_attrs without attrgetter
    Cure: Add the attribute to dangerous_attrs.

import-lacks (warning): A name that a module is to give and does not have
    No program can import it, and the one that was meant stays closed. Told where the module has one
    that is spelt nearly so: others may be of another version of Python.
    Example: - copy: [copy, deepcpy]
    Cure: Correct it, or delete it.

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

import difflib
import functools
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox.check.checker import check as violations
from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.mistakes import did_you_mean
from tools.policy_lint.known import HARMLESS, KNOWN, REVEALING
from tools.policy_lint.rules.names import INTROSPECTION
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """Open paths to what is not allowed; entries that refuse too much, or nothing."""
    try:
        answers = [subject.guests.explored]
    except SandboxUnavailable:
        return  # why no guest runs is told by the rules of the boundary
    try:
        answers.append(subject.guests.explored_elsewhere)
    except SandboxUnavailable as error:
        message = f"the other modules could not be explored: {error}"
        cure = "run the lint where a guest can import them"
        yield subject.finding("not-tried", ("allowed_imports",), message, cure)
    for answer in answers:
        yield from _open(subject, policy, answer["open"])
        for module, reason in answer["missing"].items():
            at, cure = ("allowed_imports", module), "install what it needs, or delete it"
            message = f"{module} cannot be imported: {reason}"
            yield subject.finding("import-fails", at, message, cure)
        for module, (lacking, besides) in answer["lacking"].items():
            yield from _lacking(subject, module, lacking, besides)
        for name in answer["refused"].keys() - REVEALING.keys():
            message = f"{name} refuses honest programs, such as {answer['refused'][name]}"
            yield subject.finding("attr-refuses", ("dangerous_attrs", name), message, "delete it")
    if len(answers) == 2:
        yield from _unknown(subject, policy, answers)


def _lacking(subject: Subject, module: str, lacking: list[str], besides: list[str]) -> Findings:
    for at, node in subject.document.values.items():
        if at[2:3] == (module,) and node.value in lacking:
            near = difflib.get_close_matches(node.value, besides, n=1, cutoff=0.82)
            if near:
                message, cure = f"{module} has no {node.value}", f"did you mean {near[0]}?"
                yield subject.finding("import-lacks", at, message, cure, node.value)


def _open(subject: Subject, policy: Policy, paths: list[tuple[list[str], str]]) -> Findings:
    wordless = replace(policy, blocked_words=())  # what refuses is to be an attribute or a name
    for (start, *steps), what in paths:
        path = ".".join((start, *steps))
        if violations(f"import {start}\n{path}", wordless):
            continue
        message, name = f"{path} is {what}, and nothing refuses it", steps[-1]
        cure = f"add {name} to dangerous_attrs"
        yield subject.finding("import-exposes", ("allowed_imports", start), message, cure, name)
        cure = f"add `- {name}`"
        yield subject.finding("import-exposes", ("dangerous_attrs",), message, cure, name)


def _unknown(subject: Subject, policy: Policy, answers: list[dict[str, Any]]) -> Findings:
    seen = {name for kind in INTROSPECTION for name in dir(kind)} | REVEALING.keys()
    seen |= sys.stdlib_module_names | {*KNOWN["names"]["elsewhere"].split()}
    seen = seen.union(*(answer["seen"] for answer in answers))
    for field, rule in (("dangerous_names", "name-unknown"), ("dangerous_attrs", "attr-unknown")):
        for entry in subject.entries(field):
            module, _, name = entry.rpartition(".")
            if name not in seen and name not in _known():
                message, known = f"nothing is called {name}", HARMLESS ^ (seen | _known())
                cure = did_you_mean(name, known, "delete it")
                yield subject.finding(rule, (field, entry), message, cure)
            elif module and module not in {*policy.allowed_imports, *sys.stdlib_module_names}:
                message = f"{module} is not in allowed_imports"
                cure = did_you_mean(module, policy.allowed_imports, "delete it")
                yield subject.finding(rule, (field, entry), message, cure)


@functools.cache
def _known() -> set[str]:
    """What else there is: in modules that are imported here, and the standard library's files."""
    holders = [sys.modules[name] for name in {*sys.modules} & sys.stdlib_module_names]
    kinds = (k for holder in holders for k in vars(holder).values() if isinstance(k, type))
    library = Path(os.__file__).parent
    packages = (library / name for name in sys.stdlib_module_names - {"test", "idlelib"})
    submodules = {file.stem for package in packages for file in package.glob("*.py")}
    return submodules.union(*map(dir, (*holders, *kinds)))
