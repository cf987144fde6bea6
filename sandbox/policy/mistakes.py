"""Tells every mistake in a policy file, with its place and its cure.

What may stand where is in schema.json, in the words of JSON Schema that are read here; its
descriptions are the cures. What no schema can say follows: fields that contradict each other,
modules that are not allowed, regular expressions that do not compile or take long.
"""

import difflib
import functools
import json
import keyword
import re
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from sandbox.policy.document import At, Document, Place, dotted
from sandbox.policy.words import Unbounded, cost

__all__ = ["SCHEMA_FILE", "add_mistakes", "did_you_mean", "schema"]

SCHEMA_FILE = Path(__file__).with_name("schema.json")
_HIGHEST_UID = 2**32 - 2  # uid 2**32-1 means "no change" to setresuid(2)

# Limits that contradict each other where the first is greater than the second.
_ORDERED_LIMITS: tuple[tuple[At, At], ...] = (
    (("rlimits", "cpu_seconds"), ("limits", "wall_seconds")),
    (("rlimits", "stack_mib"), ("rlimits", "address_space_mib")),
    (("limits", "prepared_guests"), ("limits", "concurrent_guests")),
    (("limits", "sender_concurrent"), ("limits", "concurrent_guests")),
)
_MOST_STEPS = 20_000  # of all blocked words, from one place of a program: bounds the checker's time
_TYPES = {"object": dict, "array": list, "integer": int, "string": str}
_WORDS = {dict: "names with values", list: "a list", int: "a whole number", str: "text"}
_NO_NAMES = "write one module an entry, and at least one name: `- time: [time, strftime]`"


def add_mistakes(document: Document) -> None:
    """Add to a document every mistake that keeps it from being a policy, sorted by place."""
    if document.value:
        _check(document, (), document.value, schema())
        _check_preloaded(document)
        _check_words(document)
        _check_limits(document)
        _check_uids(document)
    document.findings.sort(
        key=lambda found: (found.path != document.path, found.line, found.column)
    )


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a policy."""
    loaded: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return loaded


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A cure: the known word that is nearest, else `otherwise`."""
    near = _nearest(word, known)
    return f"did you mean {near}?" if near else otherwise


def _nearest(word: str, known: Iterable[str]) -> str | None:
    by_lower = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def _check(document: Document, at: At, value: Any, part: Any) -> None:
    """Check a value and what it holds against a part of the schema."""
    if value is None:  # what it should have been is reported already
        return
    part = _referred(part)
    if "then" in part and at:  # a module, or one with the names that it gives
        part = _referred(part["then"] if isinstance(value, dict) else part["else"])
    types = part.get("type", ())
    kinds = [_TYPES[name] for name in ([types] if isinstance(types, str) else types)]
    if "const" in part:
        if value != part["const"]:
            cure = f"write {part['const']} without quotes"
            document.report(at, "unknown-version", f"version {value!r} is unknown", cure)
    elif kinds and type(value) not in kinds:
        _report_type(document, at, value, kinds[0])
    elif isinstance(value, dict):
        if list in kinds:
            message = f"{at[0]} adds and removes, but this file extends no other"
            document.report(at, "bad-edit", message, "write a list", key=True)
        _check_mapping(document, at, value, part)
    elif isinstance(value, list):
        _check_list(document, at, value, part)
    elif isinstance(value, int):
        _check_number(document, at, value, part)
    elif "enum" in part:
        _check_choice(document, at, value, part["enum"])
    else:
        _check_text(document, at, value, part)


def _referred(part: Any) -> Any:
    """A part of the schema, or that which it refers to."""
    while "$ref" in part:
        steps = part["$ref"].removeprefix("#/").split("/")
        part = functools.reduce(dict.__getitem__, steps, schema())
    return part


def _report_type(document: Document, at: At, found: Any, wanted: type) -> None:
    """Tell of a value of another kind; also of text that other readers of YAML take for one."""
    is_text = isinstance(found, str)
    shown = "empty" if found == "" else found if is_text else _WORDS[type(found)]
    message = f"{dotted(at)} is {shown}, not {_WORDS[wanted]}"
    cure = f"write {_WORDS[wanted]}"
    if wanted is int and is_text:
        cure += " in decimal, without quotes"
        if elsewhere := _elsewhere(found):
            message += f"; some readers of YAML take it for {elsewhere}"
    elif wanted is list and at[0] == "allowed_imports" and len(at) > 1:
        cure += " of names, or the module alone as text"
    elif wanted is list:
        cure += ", or [] for an empty one"
    elif wanted is str:
        cure += ", in 'single quotes' if it looks like a number"
    document.report(at, "wrong-type", message, cure)


def _elsewhere(text: str) -> str:
    """What YAML 1.1 makes of a text; empty where that is text too."""
    try:
        value = yaml.safe_load(text[:40])
    except (yaml.YAMLError, ValueError):
        return ""
    words = {bool: "true or false", type(None): "null", float: "a fraction", int: f"{value}"}
    return words.get(type(value), "")


def _check_mapping(document: Document, at: At, value: dict[str, Any], part: Any) -> None:
    """Check the fields of a mapping; one that is misspelt is not missing as well."""
    known, others = part.get("properties", {}), part["additionalProperties"]
    if not part.get("minProperties", 0) <= len(value) <= part.get("maxProperties", len(value)):
        document.report(at, "wrong-type", f"{dotted(at)} names no module or no names", _NO_NAMES)
    misspelt = set()
    for key, item in value.items():
        here = (*at, key)
        if key in known:
            _check(document, here, item, known[key])
        elif others:
            _check_text(document, here, key, _referred(part["propertyNames"]), key=True)
            _check(document, here, item, others)
        else:
            misspelt.add(_nearest(key, known))
            cure = _home_of(key) or did_you_mean(key, known, "delete it")
            document.report(here, "unknown-key", f"{key} is unknown here", cure, key=True)
    whole = schema()["else"]  # of a policy that is merged with what it extends
    for key in (whole["properties"].get(at[0], {}) if at else whole).get("required", ()):
        if key not in value and key not in misspelt:
            here = (*at, key)
            cure = f"add `{key}:` ({known[key]['description']})"
            document.report(here, "missing-key", f"{dotted(here)} is missing", cure, key=True)


def _home_of(key: str) -> str | None:
    """A cure for a field that was put under the wrong heading."""
    for group, about in schema()["properties"].items():
        if key == group:
            return f"move {key} to the left margin: it is a field of its own"
        if key in about.get("properties", ()):
            return f"move {key} under {group}"
    return None


def _check_list(document: Document, at: At, value: list[Any], part: Any) -> None:
    """Check the entries of a list, and that each stands there once."""
    if len(value) < part.get("minItems", 0):
        document.report(at, "wrong-type", f"{dotted(at)} names no module or no names", _NO_NAMES)
    first: dict[str | tuple[str, ...], Place] = {}
    for index, item in enumerate(value):
        here = (*at, index)
        _check(document, here, item, part["items"])
        if not isinstance(item, str | dict):
            continue
        entry = item if isinstance(item, str) else tuple(item)  # a module, or a part of one
        place = document.place(here)
        if entry in first:
            path, line, _ = first[entry]
            elsewhere = "" if path == place.path else f" of {path}"
            shown = item if isinstance(item, str) else ", ".join(item)
            message = f"{shown} stands on line {line}{elsewhere} already"
            document.report(here, "duplicate-entry", message, "delete one of the two")
        first.setdefault(entry, place)
    for wanted in part.get("allOf", ()):
        layer = wanted["contains"]["const"]
        if layer not in value and all(one in part["items"]["enum"] for one in value):
            message = f"{at[0]} lacks {layer}, without which nothing holds a program"
            document.report(at, "essential-layer", message, f"add `- {layer}`", key=True)


def _check_number(document: Document, at: At, value: int, part: Any) -> None:
    bound = ""
    if value < part["minimum"]:
        bound = f"at least {part['minimum']}"
    elif value > part["maximum"]:
        bound = f"at most {part['maximum']}"
    if bound:
        message = f"{dotted(at)} is {value} and must be {bound}"
        document.report(at, "out-of-range", message, f"write {bound}")


def _check_choice(document: Document, at: At, value: str, known: list[str]) -> None:
    if value in known:
        return
    if at[0] == "required_layers":
        turned = [one for one in known if sorted(one.split()) == sorted(value.split())]
        cure = did_you_mean(value, turned or known, f"use one of {', '.join(known)}")
        document.report(at, "unknown-layer", f"{value} is no layer", cure)
        return
    kind = "group" if value.startswith("@") else "condition" if "(" in value else "system call"
    name, bracket, _ = value.partition("(")
    same = [one for one in known if bracket and one.partition("(")[0] == name]
    cure = did_you_mean(value, same or known, "see sandbox/kernel/syscalls.py for the names")
    document.report(at, "unknown-syscall", f"{value} is no {kind} that is known", cure)


def _check_text(document: Document, at: At, text: str, part: Any, *, key: bool = False) -> None:
    if len(text) < part.get("minLength", 0) or not re.search(part.get("pattern", ""), text):
        about = part["description"].rstrip(".")
        what = ascii(text) if text else "an empty entry"
        message, cure = f"{what} cannot stand in {at[0]}", f"write {about[0].lower()}{about[1:]}"
        document.report(at, "bad-name", message, cure, key=key)
    elif part.get("format") == "identifiers" and any(map(keyword.iskeyword, text.split("."))):
        verb = "is" if keyword.iskeyword(text) else "holds"
        cure = "choose another" if key else "delete it"
        document.report(at, "bad-name", f"{text} {verb} a keyword of Python", cure, key=key)


def _check_preloaded(document: Document) -> None:
    """Tell of a preloaded module that is not allowed, where the misspelling is."""
    imports = {name: where for where, name in document.strings("allowed_imports")}
    standard = sys.stdlib_module_names
    for at, module in document.strings("preloaded"):
        if module in imports or not document.is_sound("allowed_imports"):
            continue
        message = f"{dotted(at)} is {module}, which allowed_imports does not hold"
        near = _nearest(module, imports if module not in standard else imports.keys() - standard)
        if near and module in standard:
            at, near = imports[near], module  # noqa: PLW2901
        cure = f"did you mean {near}?"
        if not near:
            cure = f"add {module} to allowed_imports, or delete this line"
        document.report(at, "preloaded-not-allowed", message, cure)


def _check_words(document: Document) -> None:
    steps = 0
    for at, word in document.strings("blocked_words"):
        if re.search("[\x00-\x1f\x7f]", word):
            message = "in double quotes YAML turns \\b and its like into control characters"
            if "\b" in word:
                message = (
                    "in double quotes YAML turns \\b into a backspace, so that this never matches"
                )
            document.report(at, "regex-backspace", message, "put it in 'single quotes'")
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tools/policy-lint tells of what Python warns of
                re.compile(word)
            steps += cost(word)
            if steps > _MOST_STEPS:
                raise Unbounded(f"all words up to this one take more than {_MOST_STEPS} steps")
        except Unbounded as error:
            message = f"{word} may take long to search for: {error}"
            cure = (
                "bound its repetitions, and let each begin after what it cannot match; or delete it"
            )
            document.report(at, "word-slow", message, cure)
        except (re.error, RecursionError, OverflowError) as error:
            message = f"{word} is no regular expression: {error}"
            cure = "mend it; put a backslash before a character that is meant as itself"
            document.report(at, "regex-invalid", message, cure)


def _check_limits(document: Document) -> None:
    for low, high in _ORDERED_LIMITS:
        least, most = document.number(low), document.number(high)
        if least is not None and most is not None and least > most:
            message = f"{dotted(low)} {least} is above {dotted(high)} {most}"
            document.report(low, "limits-contradict", message, f"write at most {most}")
            document.report(high, "limits-contradict", message, f"write at least {least}")


def _check_uids(document: Document) -> None:
    first, count = (document.number(("identity", name)) for name in ("first_uid", "uid_count"))
    running, idle = (
        document.number(("limits", f"{name}_guests")) for name in ("concurrent", "prepared")
    )
    if first is not None and count is not None and first + count - 1 > _HIGHEST_UID:
        message = f"the user ids end at {first + count - 1}, above the highest, {_HIGHEST_UID}"
        document.report(
            ("identity", "first_uid"), "limits-contradict", message, "write a lower first_uid"
        )
    if count is None or running is None or idle is None or count >= running + idle:
        return
    message = f"{count} user ids do not suffice for {running} concurrent and {idle} prepared guests"
    for at, bound, fits in (
        (("identity", "uid_count"), f"least {running + idle}", True),
        (("limits", "concurrent_guests"), f"most {count - idle}", count - idle > 0),
        (("limits", "prepared_guests"), f"most {count - running}", count - running > 0),
    ):
        if fits:
            document.report(at, "limits-contradict", message, f"write at {bound}")
