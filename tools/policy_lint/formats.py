"""Findings as text for people, JSON, SARIF 2.1.0 and GitHub's workflow commands."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sandbox.policy.document import LINE_END
from tools.policy_lint.finding import Finding, Rule

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_COLOURS = {"error": "\033[31m", "warning": "\033[33m", "note": "\033[36m"}


def text(findings: list[Finding], *, colour: bool = False) -> str:
    """Each finding with its line, a caret under the place, and the cure; then the total."""
    sources: dict[Path, list[str]] = {}
    parts = []
    for found in findings:
        if found.accepted:
            continue
        if found.path not in sources:
            sources[found.path] = _lines(found.path)
        parts.append(_paragraph(found, sources[found.path], colour))
    return "\n".join([*parts, total(findings)]) + "\n"


def one_line_each(findings: Iterable[Finding]) -> str:
    """Changes, one a line: what became of the policy there, and why."""
    findings = list(findings)
    lines = [f"{found.rule.id:9}{found.path}:{found.line}: {found.message}" for found in findings]
    return "\n".join(lines or ["no difference in meaning"]) + "\n"


def total(findings: Iterable[Finding]) -> str:
    """How many findings of each severity there are, in one line."""
    counts = Counter("accepted" if found.accepted else found.rule.severity for found in findings)
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
        "rule": found.rule.id,
        "severity": found.rule.severity,
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
        kind = "notice" if found.rule.severity == "note" else found.rule.severity
        properties = {
            "file": str(found.path),
            "line": str(found.line),
            "col": str(found.column),
            "title": found.rule.id,
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
    rules = sorted({found.rule for found in findings}, key=lambda rule: rule.id)
    driver = {
        "name": "policy-lint",
        "rules": [_sarif_rule(rule) for rule in rules],
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
        "help": {"text": f"For example: {rule.example}\nCure: {rule.cure}"},
        "defaultConfiguration": {"level": rule.severity},
    }


def _sarif_result(found: Finding, index: int) -> dict[str, Any]:
    location = {
        "artifactLocation": {"uri": _uri(found.path)},
        "region": {"startLine": found.line, "startColumn": found.column},
    }
    result: dict[str, Any] = {
        "ruleId": found.rule.id,
        "ruleIndex": index,
        "level": found.rule.severity,
        "message": {"text": f"{found.message}; {found.cure}"},
        "locations": [{"physicalLocation": location}],
    }
    if found.accepted:
        result["suppressions"] = [{"kind": "inSource", "justification": found.accepted}]
    return result


def _uri(path: Path) -> str:
    """Relative to the current folder, as code scanning wants it, where the file is beneath it."""
    full = path.resolve()
    here = Path.cwd()
    return full.relative_to(here).as_posix() if full.is_relative_to(here) else full.as_uri()


def _paragraph(found: Finding, lines: list[str], colour: bool) -> str:
    severity: str = found.rule.severity
    if colour:
        severity = f"{_COLOURS[severity]}{severity}\033[0m"
    head = f"{found.path}:{found.line}:{found.column}: {severity}: {found.message}"
    shown = [f"{head} [{found.rule.id}]"]
    if found.line <= len(lines) and (line := lines[found.line - 1]).strip():
        before = "".join("\t" if c == "\t" else " " for c in line[: found.column - 1])
        shown += [f"    {line}", f"    {before}^"]
    return "\n".join([*shown, f"    {found.cure}", ""])


def _lines(path: Path) -> list[str]:
    try:
        return LINE_END.split(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return []


FORMATS: Mapping[str, Callable[[list[Finding]], str]] = {
    "text": text,
    "json": as_json,
    "sarif": sarif,
    "github": github,
}
