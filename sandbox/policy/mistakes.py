"""Tells every mistake in a policy file, with its place and its cure.

What may stand where is in schema.json, whose descriptions are cures. What no schema can say
follows: fields that contradict each other, modules that are not allowed, regular expressions that
do not compile or take long.
"""

import functools
import json
import keyword
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from sandbox.policy.document import At, Document, dotted
from sandbox.policy.words import Unbounded, cost

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
_TYPES = {
    "object": "names with values",
    "array": "a list",
    "integer": "a whole number",
    "string": "text",
}
_KINDS = dict(zip((dict, list, int, str), _TYPES.values(), strict=True))


def add_mistakes(document: Document) -> None:
    """Add to a document every mistake that keeps it from being a policy, sorted by place."""
    if document.value:
        _check_schema(document)
        _check_edits(document)
        _check_preloaded(document)
        _check_words(document)
        _check_limits(document)
        _check_uids(document)
    document.findings.sort(key=lambda one: (one.path != document.path, one.line, one.column))


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
    import difflib  # 5 ms that no good policy needs

    by_lower = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def _duplicates(
    _validator: object, _is_wanted: bool, entries: Any, _schema: object
) -> Iterator[jsonschema.ValidationError]:
    """Find every duplicate in a list, where JSON Schema's own check says only that there is one."""
    first: dict[str | tuple[str, ...], int] = {}
    for index, item in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(item, str | dict):
            entry = item if isinstance(item, str) else tuple(item)  # a module, or a part of one
            if entry in first:
                yield jsonschema.ValidationError(
                    "", path=(index,), instance=item, validator_value=first[entry]
                )
            first.setdefault(entry, index)


_FORMATS = jsonschema.FormatChecker(())


@_FORMATS.checks("identifiers")
def _holds_no_keyword(text: object) -> bool:
    return not any(map(keyword.iskeyword, str(text).split(".")))


_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"uniqueItems": _duplicates}
)


def _check_schema(document: Document) -> None:
    validator = _Validator(schema(), format_checker=_FORMATS)
    for error in validator.iter_errors(document.value):
        if error.instance is not None:  # what it should have been is reported already
            _report(document, tuple(error.absolute_path), error)


def _report(document: Document, at: At, error: jsonschema.ValidationError) -> None:
    """Tell of one thing that the schema refuses, in words of ours."""
    wanted: Any = error.validator_value
    found: Any = error.instance
    match error.validator:
        case "additionalProperties" | "required":
            _report_keys(document, at, error)
        case "type":
            _report_type(document, at, found, wanted if isinstance(wanted, str) else wanted[0])
        case "const":
            cure = f"write {wanted} without quotes"
            document.report(at, "unknown-version", f"version {found!r} is unknown", cure)
        case "contains":
            layer = wanted["const"]
            if any(one not in _known_layers() for one in found):
                return  # it may be there, misspelt
            message = f"required_layers lacks {layer}, without which nothing holds a program"
            document.report(at, "essential-layer", message, f"add `- {layer}`", key=True)
        case "enum":
            if isinstance(found, str):  # else its type is told
                _report_choice(document, at, found, wanted)
        case "uniqueItems":
            path, line, _ = document.place((*at[:-1], wanted))
            elsewhere = "" if path == document.place(at).path else f" of {path}"
            shown = found if isinstance(found, str) else ", ".join(found)
            message = f"{shown} stands on line {line}{elsewhere} already"
            document.report(at, "duplicate-entry", message, "delete one of the two")
        case "minimum" | "maximum":
            bound = f"at {'least' if error.validator == 'minimum' else 'most'} {wanted}"
            message = f"{dotted(at)} is {found} and must be {bound}"
            document.report(at, "out-of-range", message, f"write {bound}")
        case "minProperties" | "maxProperties" | "minItems":
            message = f"{dotted(at)} names no module or no names"
            cure = "write one module an entry, and at least one name: `- time: [time, strftime]`"
            document.report(at, "wrong-type", message, cure)
        case "pattern" | "minLength" | "format":
            _report_text(document, at, found, error)
        case _:
            document.report(at, "wrong-type", error.message, "see sandbox/policy/schema.json")


def _report_text(document: Document, at: At, text: str, error: jsonschema.ValidationError) -> None:
    is_key = "propertyNames" in error.absolute_schema_path
    if error.validator == "format":
        message = f"{text} {'is' if keyword.iskeyword(text) else 'holds'} a keyword of Python"
        cure = "choose another" if is_key else "delete it"
    else:
        about: str = error.schema["description"].rstrip(".")  # type: ignore[index]
        message = f"{ascii(text) if text else 'an empty entry'} cannot stand in {at[0]}"
        cure = f"write {about[0].lower()}{about[1:]}"
    document.report((*at, text) if is_key else at, "bad-name", message, cure, key=is_key)


def _check_edits(document: Document) -> None:
    for name, value in document.value.items():
        about = schema()["properties"].get(name, {})
        if isinstance(value, dict) and about.get("type") == ["array", "object"]:
            message = f"{name} adds and removes, but this file extends no other"
            document.report((name,), "bad-edit", message, "write a list", key=True)


def _known_layers() -> list[str]:
    layers: list[str] = schema()["properties"]["required_layers"]["items"]["enum"]
    return layers


def _report_type(document: Document, at: At, found: Any, wanted: str) -> None:
    """Tell of a value of another kind; also of text that other readers of YAML take for one."""
    is_text = isinstance(found, str)
    shown = "empty" if found == "" else found if is_text else _KINDS[type(found)]
    message = f"{dotted(at)} is {shown}, not {_TYPES[wanted]}"
    cure = f"write {_TYPES[wanted]}"
    if wanted == "integer" and is_text:
        cure += " in decimal, without quotes"
        if elsewhere := _elsewhere(found):
            message += f"; some readers of YAML take it for {elsewhere}"
    elif wanted == "array" and at[0] == "allowed_imports" and len(at) > 1:
        cure += " of names, or the module alone as text"
    elif wanted == "array":
        cure += ", or [] for an empty one"
    elif wanted == "string":
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


def _report_keys(document: Document, at: At, error: jsonschema.ValidationError) -> None:
    """Tell of a field that is unknown or missing; one that is misspelt is not missing as well."""
    found: Any = error.instance
    known = schema()["properties"]
    for step in error.absolute_path:
        known = known[step]["properties"]
    unknown = [key for key in found if key not in known]
    if error.validator == "additionalProperties":
        for key in unknown:
            cure = _home_of(key) or did_you_mean(key, known, "delete it")
            document.report((*at, key), "unknown-key", f"{key} is unknown here", cure, key=True)
        return
    misspelt = {_nearest(key, known) for key in unknown}
    wanted: Any = error.validator_value
    for key in (key for key in wanted if repr(key) in error.message and key not in misspelt):
        message = f"{dotted((*at, key))} is missing"
        cure = f"add `{key}:` ({known[key]['description']})"
        document.report((*at, key), "missing-key", message, cure, key=True)


def _home_of(key: str) -> str | None:
    """A cure for a field that was put under the wrong heading."""
    for group, about in schema()["properties"].items():
        if key == group:
            return f"move {key} to the left margin: it is a field of its own"
        if key in about.get("properties", ()):
            return f"move {key} under {group}"
    return None


def _report_choice(document: Document, at: At, value: str, known: list[str]) -> None:
    if at[0] == "required_layers":
        turned = (one for one in known if sorted(one.split()) == sorted(value.split()))
        cure = did_you_mean(next(turned, value), known, f"use one of {', '.join(known)}")
        document.report(at, "unknown-layer", f"{value} is no layer", cure)
        return
    kind = "group" if value.startswith("@") else "condition" if "(" in value else "system call"
    name, bracket, _ = value.partition("(")
    same = [one for one in known if bracket and one.partition("(")[0] == name]
    cure = did_you_mean(value, same or known, "see sandbox/kernel/syscalls.ini for the names")
    document.report(at, "unknown-syscall", f"{value} is no {kind} that is known", cure)


def _check_preloaded(document: Document) -> None:
    """Tell of a preloaded module that is not allowed, where the misspelling is."""
    entries = document.value.get("allowed_imports")
    is_sound = not any(one.field.startswith("allowed_imports") for one in document.findings)
    if not (isinstance(entries, list) and None not in entries and is_sound):
        return  # what is missing there may be misspelt
    imports = {name: where for where, name in document.strings("allowed_imports")}
    standard = sys.stdlib_module_names
    for at, module in document.strings("preloaded"):
        if module in imports:
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
            cure = "bound its repetitions, and begin each after what it cannot match; or delete it"
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
    guests = ("concurrent_guests", "prepared_guests")
    running, idle = (document.number(("limits", name)) for name in guests)
    if first is not None and count is not None and first + count - 1 > _HIGHEST_UID:
        message = f"the user ids end at {first + count - 1}, above the highest, {_HIGHEST_UID}"
        at, cure = ("identity", "first_uid"), "write a lower first_uid"
        document.report(at, "limits-contradict", message, cure)
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
