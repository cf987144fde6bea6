"""Findings as text for people, JSON, SARIF 2.1.0 and GitHub's workflow commands."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sandbox.policy.document import LINE_END, Finding
from tools.policy_lint.rules import Rule, every_rule, version

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_COLOURS = {"error": "\033[31m", "warning": "\033[33m", "note": "\033[36m"}
_WIDTH = 160  # of a line that is shown


def text(
    findings: list[Finding],
    sources: Mapping[Path, bytes],
    *,
    is_diff: bool = False,
    colour: bool = False,
) -> str:
    """Each finding with its line, a caret under the place, and the cure; then the total.

    `sources` has the files. Of a difference each change is one line. What comes from a file is
    printed without its control characters, which a terminal would obey.
    """
    lines = {path: LINE_END.split(raw.decode("utf-8", "replace")) for path, raw in sources.items()}
    parts = []
    for found in findings:
        place = f"{found.path}:{found.line}:{found.column}"
        if is_diff:
            parts.append(f"{found.rule:9}{_plain(f'{place}: {found.message}')}")
        elif found.accepted:
            told = f"{place}: accepted: {found.message} [{found.rule}]"
            parts.append(f"{_plain(told)}\n    {_plain(found.accepted)}\n")
        else:
            parts.append(_paragraph(found, place, lines.get(found.path, []), colour))
    return "\n".join([*parts, total(findings, is_diff=is_diff)]) + "\n"


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def total(findings: Iterable[Finding], *, is_diff: bool = False) -> str:
    """How many findings of each severity there are, in one line; of a difference, of each kind."""
    if is_diff:
        kinds = Counter(found.rule for found in findings)
        return ", ".join(f"{kinds[kind]} {kind}" for kind in kinds) or "no difference in meaning"
    counts = Counter("accepted" if found.accepted else found.severity for found in findings)
    words = [
        f"{counts[kind]} {kind}{'s' if counts[kind] > 1 and kind != 'accepted' else ''}"
        for kind in ("error", "warning", "note", "accepted")
        if counts[kind]
    ]
    return ", ".join(words) or "no findings"


def as_json(findings: Iterable[Finding]) -> str:
    """A list of objects, one a finding; accepted ones hold the reason."""
    return json.dumps({"findings": [_record(found) for found in findings]}, indent=2) + "\n"


def _record(found: Finding) -> dict[str, Any]:
    record: dict[str, Any] = {
        "rule": found.rule,
        "severity": found.severity,
        "file": str(found.path),
        "line": found.line,
        "column": found.column,
        "value": found.value,
        "message": found.message,
        "cure": found.cure,
    }
    return record | ({"accepted": found.accepted} if found.accepted else {})


def github(findings: Iterable[Finding]) -> str:
    """One workflow command a finding, which annotates its line in a pull request.

    GitHub shows ten of a kind for each step, so the total follows.
    """
    findings = list(findings)
    lines = []
    for found in findings:
        if found.accepted:
            continue
        kind = "notice" if found.severity == "note" else found.severity
        properties = {
            "file": str(found.path),
            "line": str(found.line),
            "col": str(found.column),
            "title": found.rule,
        }
        settings = ",".join(
            f"{key}={_escape(value, in_property=True)}" for key, value in properties.items()
        )
        lines.append(f"::{kind} {settings}::{_escape(f'{found.message}; {found.cure}')}")
    return "\n".join([*lines, total(findings)]) + "\n"


def _escape(value: str, *, in_property: bool = False) -> str:
    pairs = {"%": "%25", "\r": "%0D", "\n": "%0A"} | (
        {":": "%3A", ",": "%2C"} if in_property else {}
    )
    for character, code in pairs.items():
        value = value.replace(character, code)
    return value


def sarif(findings: Iterable[Finding]) -> str:
    """A SARIF 2.1.0 log; accepted findings are results with a suppression and its reason."""
    findings = list(findings)
    rules = sorted({found.rule for found in findings})
    driver = {
        "name": "policy-lint",
        "version": version(),
        "rules": [_sarif_rule(every_rule()[rule]) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(found, rules.index(found.rule)) for found in findings],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.why}\n\nExample: {rule.example}\nCure: {rule.cure}",
        },
        "defaultConfiguration": {"level": rule.severity},
    }


def _sarif_result(found: Finding, index: int) -> dict[str, Any]:
    uri = _uri(found.path)
    # The same while other lines of the file change.
    identity = hashlib.sha256(f"{uri} {found.rule} {found.field} {found.value}".encode())
    location = {
        "artifactLocation": {"uri": uri},
        "region": {"startLine": found.line, "startColumn": found.column},
    }
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "ruleIndex": index,
        "level": found.severity,
        "message": {"text": f"{found.message}; {found.cure}"},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"ruleFieldValue/v1": identity.hexdigest()[:32]},
    }
    if found.accepted:
        result["suppressions"] = [{"kind": "inSource", "justification": found.accepted}]
    return result


def _uri(path: Path) -> str:
    """Relative to the current folder, as code scanning wants it, where the file is beneath it."""
    full = path.resolve()
    here = Path.cwd()
    is_here = full.is_relative_to(here)
    return quote(full.relative_to(here).as_posix()) if is_here else full.as_uri()


def _paragraph(found: Finding, place: str, lines: list[str], colour: bool) -> str:
    severity: str = found.severity
    if colour:
        severity = f"{_COLOURS[severity]}{severity}\033[0m"
    shown = [f"{_plain(place)}: {severity}: {_plain(found.message)} [{found.rule}]"]
    if found.line <= len(lines) and (line := lines[found.line - 1]).strip():
        shown += excerpt(line, found.column)
    return "\n".join([*shown, f"    {_plain(found.cure)}", ""])


def excerpt(line: str, column: int) -> list[str]:
    """A line as it can be shown, and a caret under its column."""
    start = max(0, column - 1 - _WIDTH // 2) if len(line) > _WIDTH else 0
    before, after = line[start : column - 1], line[column - 1 : start + _WIDTH]
    before = _plain(before.replace("\t", " "))
    return [f"    {before}{_plain(after.replace(chr(9), ' '))}", f"    {' ' * len(before)}^"]


FORMATS: Mapping[str, Callable[[list[Finding]], str]] = {
    "json": as_json,
    "sarif": sarif,
    "github": github,
}
