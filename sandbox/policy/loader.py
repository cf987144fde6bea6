"""Loads policy.yaml into a frozen Policy, or tells every mistake with its place and its cure."""

import difflib
import functools
import hashlib
import json
import keyword
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import yaml

from sandbox.kernel import seccomp, syscalls
from sandbox.policy.document import At, Document, Finding, Place, dotted
from sandbox.policy.extends import read_document
from sandbox.policy.words import Unbounded, cost

__all__ = [
    "Finding",
    "Identity",
    "Limits",
    "Policy",
    "PolicyError",
    "Rlimits",
    "load_policy",
    "parse_policy",
]

SCHEMA_FILE = Path(__file__).with_name("schema.json")
HIGHEST_UID = 2**32 - 2  # uid 2**32-1 means "no change" to setresuid(2)

# Limits that contradict each other where the first is greater than the second.
ORDERED_LIMITS: tuple[tuple[At, At], ...] = (
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


@dataclass(frozen=True)
class Rlimits:
    """What the kernel bounds for each guest (man 2 setrlimit)."""

    cpu_seconds: int
    address_space_mib: int
    stack_mib: int
    file_size_bytes: int
    core_bytes: int
    open_files: int
    processes: int


@dataclass(frozen=True)
class Limits:
    """What the sandbox and the bot bound."""

    wall_seconds: int
    source_bytes: int
    output_bytes: int
    concurrent_guests: int
    prepared_guests: int
    queue_seconds: int
    sender_concurrent: int
    sender_per_minute: int
    zygote_guests: int
    zygote_minutes: int
    input_bytes: int = 0
    picture_bytes: int = 0


@dataclass(frozen=True)
class Identity:
    """The user ids that guests run as; a guest's group id is its user id."""

    first_uid: int
    uid_count: int


@dataclass(frozen=True)
class Policy:
    """One checked policy file.

    `files` has the file and those that it extends, with the SHA-256 of each; `sha256` is the file's
    own, or if there are several, that of all these hashes in a row. `allowed_imports` has for each
    module the names that it gives, None for its public ones. `denied_syscalls` holds no groups.
    """

    path: Path
    files: Mapping[Path, str]
    sha256: str
    version: int
    allowed_imports: Mapping[str, tuple[str, ...] | None]
    preloaded: Mapping[str, str]
    prelude: tuple[str, ...]
    warm_up: tuple[str, ...]
    dangerous_names: frozenset[str]
    dangerous_attrs: frozenset[str]
    allowed_dunders: frozenset[str]
    blocked_words: tuple[re.Pattern[str], ...]
    rlimits: Rlimits
    limits: Limits
    identity: Identity
    required_layers: frozenset[str]
    readable_paths: tuple[str, ...]
    denied_syscalls: frozenset[str]


class PolicyError(Exception):
    """The file is no policy; `findings` holds every mistake, in the order of the file."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


def load_policy(path: str | Path) -> Policy:
    """Read and check a policy file. Raises PolicyError and nothing else, whatever is wrong."""
    return parse_policy(read_document(Path(path)))


def parse_policy(document: Document) -> Policy:
    """The Policy that a document holds. Raises PolicyError."""
    check_document(document)
    if document.findings:
        raise PolicyError(document.findings)
    value = document.value
    files = {path: hashlib.sha256(raw).hexdigest() for path, raw in document.files.items()}
    return Policy(
        path=document.path,
        files=MappingProxyType(files),
        sha256=document.sha256,
        version=value["version"],
        allowed_imports=MappingProxyType(_imports(value["allowed_imports"])),
        preloaded=MappingProxyType(value["preloaded"]),
        prelude=tuple(value.get("prelude", ())),
        warm_up=tuple(value.get("warm_up", ())),
        dangerous_names=frozenset(value["dangerous_names"])
        | ({"input"} if not value["limits"].get("input_bytes") else set()),
        dangerous_attrs=frozenset(value["dangerous_attrs"]),
        allowed_dunders=frozenset(value["allowed_dunders"]),
        blocked_words=tuple(map(re.compile, value["blocked_words"])),
        rlimits=Rlimits(**value["rlimits"]),
        limits=Limits(**value["limits"]),
        identity=Identity(**value["identity"]),
        required_layers=frozenset(value["required_layers"]),
        readable_paths=tuple(value["readable_paths"]),
        denied_syscalls=syscalls.expand(value["denied_syscalls"]),
    )


def _imports(entries: list[str | dict[str, list[str]]]) -> dict[str, tuple[str, ...] | None]:
    """Each module with the names that it gives; None for its public names.

    An entry for a whole module holds whatever another gives of it.
    """
    result: dict[str, tuple[str, ...] | None] = {}
    for entry in entries:
        given = {entry: None} if isinstance(entry, str) else entry
        for module, names in given.items():
            if module not in result or result[module] is not None:
                result[module] = None if names is None else tuple(names)
    return result


def check_document(document: Document) -> None:
    """Add to a document every mistake that keeps it from being a policy, sorted by place."""
    if document.value:
        for check in _CHECKS:
            check(document)
    document.findings.sort(
        key=lambda found: (found.path != document.path, found.line, found.column)
    )


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A cure: the known word that is nearest, else `otherwise`."""
    near = _nearest(word, known)
    return f"did you mean {near}?" if near else otherwise


def _nearest(word: str, known: Iterable[str]) -> str | None:
    by_lower = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a policy."""
    loaded: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return loaded


def _check_schema(document: Document) -> None:
    for error in jsonschema.Draft202012Validator(schema()).iter_errors(document.value):
        if error.instance is not None:  # what it should have been is reported already
            _report_schema_error(document, tuple(error.absolute_path), error)


def _report_schema_error(document: Document, at: At, error: jsonschema.ValidationError) -> None:
    wanted: Any = error.validator_value
    found: Any = error.instance
    where = dotted(at)
    match error.validator:
        case "additionalProperties" | "required":
            _report_keys(document, at, error)
        case "type":
            _report_type(document, at, found, wanted)
        case "const":
            cure = f"write {wanted} without quotes"
            document.report(at, "unknown-version", f"version {found!r} is unknown", cure)
        case "contains" if any(one.rule == "unknown-layer" for one in document.findings):
            pass  # it may be there, misspelt
        case "contains":
            layer = wanted["const"]
            message = f"required_layers lacks {layer}, without which nothing holds a program"
            document.report(at, "essential-layer", message, f"add `- {layer}`", key=True)
        case "enum":
            turned = [one for one in wanted if sorted(one.split()) == sorted(str(found).split())]
            cure = did_you_mean(str(found), wanted, f"use one of {', '.join(wanted)}")
            cure = f"did you mean {turned[0]}?" if turned else cure
            document.report(at, "unknown-layer", f"{found} is no layer", cure)
        case "minimum" | "maximum":
            bound = f"at {'least' if error.validator == 'minimum' else 'most'} {wanted}"
            message = f"{where} is {found} and must be {bound}"
            document.report(at, "out-of-range", message, f"write {bound}")
        case "minProperties" | "maxProperties" | "minItems":
            cure = "write one module an entry, and at least one name: `- time: [time, strftime]`"
            document.report(at, "wrong-type", f"{where} names no module or no names", cure)
        case "pattern" if at[0] == "denied_syscalls":
            pass  # _check_syscalls has a better cure
        case "pattern" | "minLength":
            key = "propertyNames" in error.absolute_schema_path
            here: Any = error.schema
            about = here["description"].rstrip(".")
            cure = f"write {about[0].lower()}{about[1:]}"
            at = (*at, found) if key else at
            what = ascii(found) if found else "an empty entry"
            message = f"{what} cannot stand in {at[0]}"
            document.report(at, "bad-name", message, cure, key=key)


def _report_type(document: Document, at: At, found: Any, wanted: str | list[str]) -> None:
    """Tell of a value of another kind; also of text that other readers of YAML take for one."""
    kind = wanted if isinstance(wanted, str) else wanted[0]
    is_text = isinstance(found, str)
    shown = "empty" if found == "" else found if is_text else _KINDS[type(found)]
    message = f"{dotted(at)} is {shown}, not {_TYPES[kind]}"
    cure = f"write {_TYPES[kind]}"
    if kind == "integer" and is_text:
        cure += " in decimal, without quotes"
        if elsewhere := _elsewhere(found):
            message += f"; some readers of YAML take it for {elsewhere}"
    elif kind == "array" and at[0] == "allowed_imports" and len(at) > 1:
        cure += " of names, or the module alone as text"
    elif kind == "array":
        cure += ", or [] for an empty one"
    elif kind == "string":
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


def _check_duplicates(document: Document) -> None:
    lists: list[At] = [(name,) for name, value in document.value.items() if isinstance(value, list)]
    lists += [at for at, _ in _gives(document)]
    for where in lists:
        first: dict[tuple[str, bool], Place] = {}
        parts = {at for at, _ in _gives(document)} if where == ("allowed_imports",) else set()
        for at, text in document.strings(*where):
            place = document.place(at)
            entry = text, (*at, text) in parts  # a module and a part of it are two entries
            if entry in first:
                path, line, _ = first[entry]
                elsewhere = "" if path == place.path else f" of {path}"
                message = f"{text} stands on line {line}{elsewhere} already"
                document.report(at, "duplicate-entry", message, "delete one of the two")
            first.setdefault(entry, place)


def _check_modules(document: Document) -> None:
    allowed = {name for _, name in document.strings("allowed_imports")}
    for name in ("allowed_imports", "preloaded", "dangerous_names", "dangerous_attrs"):
        for at, text in document.strings(name):
            if any(map(keyword.iskeyword, text.split("."))):
                document.report(at, "bad-name", f"{text} holds a keyword of Python", "delete it")
    for where, _ in _gives(document):
        for at, text in document.strings(*where):
            if keyword.iskeyword(text):
                document.report(at, "bad-name", f"{text} is a keyword of Python", "delete it")
    for at, module in document.strings("preloaded"):
        if keyword.iskeyword(str(at[-1])):
            document.report(
                at, "bad-name", f"{at[-1]} is a keyword of Python", "choose another", key=True
            )
        if module not in allowed and document.is_sound("allowed_imports"):
            _report_not_allowed(document, at, module)


def _check_edits(document: Document) -> None:
    for name, value in document.value.items():
        if isinstance(value, dict) and "array" in schema()["properties"].get(name, {}).get(
            "type", ()
        ):
            message = f"{name} adds and removes, but this file extends no other"
            document.report((name,), "bad-edit", message, "write a list", key=True)


def _gives(document: Document) -> Iterator[tuple[At, str]]:
    """Each list of the names that a module gives, as its place and the module."""
    for at, module in document.strings("allowed_imports"):
        if (where := (*at, module)) in document.keys:
            yield where, module


def _report_not_allowed(document: Document, at: At, module: str) -> None:
    """Tell of a preloaded module that is not allowed, where the misspelling is."""
    message = f"{dotted(at)} is {module}, which allowed_imports does not hold"
    imports = {name: where for where, name in document.strings("allowed_imports")}
    standard = sys.stdlib_module_names
    near = _nearest(module, imports if module not in standard else imports.keys() - standard)
    if near and module in standard:
        document.report(imports[near], "preloaded-not-allowed", message, f"did you mean {module}?")
        return
    cure = (
        f"did you mean {near}?" if near else f"add {module} to allowed_imports, or delete this line"
    )
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
    for low, high in ORDERED_LIMITS:
        least, most = document.number(low), document.number(high)
        if least is not None and most is not None and least > most:
            message = f"{dotted(low)} {least} is above {dotted(high)} {most}"
            document.report(low, "limits-contradict", message, f"write at most {most}")
            document.report(high, "limits-contradict", message, f"write at least {least}")
    _check_uids(document)


def _check_uids(document: Document) -> None:
    first, count = (document.number(("identity", name)) for name in ("first_uid", "uid_count"))
    running, idle = (
        document.number(("limits", f"{name}_guests")) for name in ("concurrent", "prepared")
    )
    if first is not None and count is not None and first + count - 1 > HIGHEST_UID:
        message = f"the user ids end at {first + count - 1}, above the highest, {HIGHEST_UID}"
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


def _check_syscalls(document: Document) -> None:
    names = {name for table in syscalls.TABLES.values() for name in table}
    known = names | syscalls.GROUPS.keys() | seccomp.CONDITIONS.keys()
    for at, entry in document.strings("denied_syscalls"):
        if entry in known:
            continue
        kind = "group" if entry.startswith("@") else "condition" if "(" in entry else "system call"
        name = entry.partition("(")[0]
        same = [one for one in known if one.partition("(")[0] == name] if "(" in entry else []
        cure = did_you_mean(entry, same or known, "see sandbox/kernel/syscalls.py for the names")
        document.report(at, "unknown-syscall", f"{entry} is no {kind} that is known", cure)


_CHECKS = (
    _check_schema,
    _check_edits,
    _check_duplicates,
    _check_modules,
    _check_words,
    _check_limits,
    _check_syscalls,
)
