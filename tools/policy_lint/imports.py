"""Rules of allowed_imports and preloaded: what a program may import and what hangs off it."""

import builtins
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sandbox.check.checker import check
from sandbox.policy.loader import Policy, did_you_mean
from tools.policy_lint.finding import Finding, Rule, finding
from tools.policy_lint.interpreter import Interpreter
from tools.policy_lint.modules import gives_beyond, pure
from tools.policy_lint.subject import Subject

MISSING = Rule(
    "import-missing",
    "error",
    "An allowed module that this interpreter does not have",
    "The fork server imports every allowed module when it starts, so the bot would not start.",
    "- statistic",
    "Correct the name, install the package, or delete the entry.",
)
FAILS = Rule(
    "import-fails",
    "error",
    "The allowed modules cannot be imported",
    "The fork server imports all of them when it starts, so the bot would not start. Shown by "
    "starting it.",
    "- mypackage, which needs a library that is not installed",
    "Repair or delete the module that the reason names.",
)
IMPURE = Rule(
    "import-impure",
    "error",
    "An allowed module that is more than computation",
    "It gives a program files, the network, processes, reflection or native code. The kernel's "
    "layers still hold then, but the checker no longer stands before them.",
    "- pathlib",
    "Delete the entry; or accept it in place with the reason why it is worth it.",
)
UNREVIEWED = Rule(
    "import-unreviewed",
    "warning",
    "An allowed module outside the standard library that nobody has judged here",
    "Its functions may read files or run code although its attributes expose no module.",
    "- mypackage",
    "Read what it does, then accept it in place with what you found.",
)
EXPOSES = Rule(
    "import-exposes",
    "error",
    "An allowed module leads to one that is not allowed",
    "Modules hold the modules that they import as plain attributes: `statistics.sys` is sys, and "
    "`sys.modules` is everything. Found by importing in a guest, on this interpreter.",
    "allowed_imports with statistics, dangerous_attrs without sys",
    "Add the attribute to dangerous_attrs.",
)
SHADOWS = Rule(
    "preloaded-shadows",
    "warning",
    "A preloaded name that hides a builtin",
    "Programs that use the builtin would find a module instead, and fail.",
    "preloaded: {sum: math}",
    "Choose another name.",
)
RULES = {rule.id: rule for rule in (MISSING, FAILS, IMPURE, UNREVIEWED, EXPOSES, SHADOWS)}


def find(subject: Subject, interpreter: Interpreter) -> Iterator[Finding]:
    """Modules that are missing or impure, and what the others expose."""
    for module, place in subject.entries("allowed_imports"):
        what = gives_beyond(module, interpreter.policy.allowed_imports.get(module))
        if what:
            message = f"{module} gives programs {what}"
            cure = f"delete it, or accept it: # accept {IMPURE.id}: REASON"
            yield finding(IMPURE, subject.path, place, message, cure, module)
        if module in interpreter.missing:
            cure = did_you_mean(module, pure() - {module}, "install it or delete the entry")
            message = f"this interpreter has no module {module}"
            yield finding(MISSING, subject.path, place, message, cure, module)
        elif not what and module.partition(".")[0] not in sys.stdlib_module_names:
            message = f"{module} is not in the standard library, and its functions are not judged"
            cure = f"accept it when you have read it: # accept {UNREVIEWED.id}: REASON"
            yield finding(UNREVIEWED, subject.path, place, message, cure, module)
    for at, _ in subject.document.strings("preloaded"):
        if hasattr(builtins, str(at[-1])):
            place = subject.document.place(at, key=True)
            message = f"{at[-1]} is a builtin, which programs would no longer find"
            cure = "delete it, or choose another name"
            yield finding(SHADOWS, subject.path, place, message, cure, str(at[-1]))


def find_failing(subject: Subject, interpreter: Interpreter) -> Iterator[Finding]:
    """That the modules cannot be imported, though each of them is there."""
    message = f"the fork server cannot import the allowed modules: {interpreter.trial.reason}"
    cure = "repair the one that the reason names, or delete it"
    yield subject.at_heading(FAILS, "allowed_imports", message, cure)


def find_exposed(subject: Subject, policy: Policy, answer: dict[str, Any]) -> Iterator[Finding]:
    """Open paths to modules that are not allowed, and to objects that do what those do."""
    wordless = replace(policy, blocked_words=())  # what refuses is to be an attribute or a name
    leads = [(path, f"the module {name}") for path, name in answer["modules"]]
    leads += answer["objects"]
    for path, what in leads:
        start, *steps = path
        dotted = ".".join(path)
        program = f"import {start}\n{dotted}"
        if not check(program, wordless):
            message = f"{dotted} is {what}, and nothing refuses it"
            cure = f"add {steps[-1]} to dangerous_attrs"
            yield subject.at_entry(EXPOSES, "allowed_imports", start, message, cure)
