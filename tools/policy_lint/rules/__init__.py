"""The rules, one family a module: what a rule is stands in its family's docstring.

    rule-id (severity): What is found
        Why it matters.
        Example: what is found
        Cure: what makes it clean

Each module has `check(subject, policy)`, which yields findings. It is imported when one of its
rules is looked for; the docstrings are read as text, so that a list of rules imports nothing. What
the loader finds is described in loading.txt.
"""

import functools
import importlib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# In the order of the list of rules.
QUICK = (
    *("acceptances", "imports", "names", "words", "limits"),
    *("syscalls", "identity", "paths", "container"),
)
BY_GUESTS = ("exposure", "boundary", "programs")
# Rules that a family by guests looks for as well.
_ALSO = {"import-fails": "exposure", "not-tried": "exposure"}
_ALSO |= {"limit-too-small": "boundary", "syscall-needed": "boundary"}

_HERE = Path(__file__).resolve().parent
_RULE = re.compile(
    r"^([a-z-]+) \((error|warning|note)\): (.+)\n((?:\n?    .*\n)+?)"
    r"    Example: (.+)\n    Cure: (.+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Rule:
    """One thing that is looked for; `example` is what is found, `cure` what makes it clean."""

    id: str
    severity: Any
    summary: str
    why: str
    example: str
    cure: str
    file: Path


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule of a policy file, by id."""
    modules = (_HERE / f"{family}.py" for family in (*QUICK, *BY_GUESTS))
    return _described(_HERE / "loading.txt", *modules)


@functools.cache
def every_rule() -> dict[str, Rule]:
    """The rules of policy files, and of the difference between two."""
    return rules() | _described(_HERE.parent / "diff.py")


def _described(*files: Path) -> dict[str, Rule]:
    """The rules in modules' docstrings, or in a text."""
    found = {}
    for file in files:
        for match in _RULE.finditer(file.read_text("utf-8")):
            name, severity, summary, why, example, cure = match.groups()
            found[name] = Rule(name, severity, summary, " ".join(why.split()), example, cure, file)
    return found


def families(wanted: Collection[str]) -> set[str]:
    """The families that look for any of the rules."""
    return {rules()[rule].file.stem for rule in wanted} | {_ALSO[r] for r in wanted if r in _ALSO}


def checker(family: str) -> Callable[..., Iterator[Any]]:
    """The check of a family, its module imported."""
    check: Callable[..., Iterator[Any]] = importlib.import_module(f"{__name__}.{family}").check
    return check
