"""Findings as text for people, JSON, SARIF 2.1.0 and GitHub's workflow commands."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from function import __version__
from sandbox.policy.document import LINE_END, Finding
from tools.policy_lint.rules import Rule, every_rule

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
    shown = []
    for found in findings:
        place = f"{found.path}:{found.line}:{found.column}"
        message = f"{_plain(found.message)} [{found.rule}]"
        if is_diff:
            shown.append(f"{found.rule:9}{_plain(f'{place}: {found.message}')}")
        elif found.accepted:
            shown += [f"{_plain(place)}: accepted: {message}", f"    {_plain(found.accepted)}", ""]
        else:
            severity: str = found.severity
            if colour:
                severity = f"{_COLOURS[severity]}{severity}\033[0m"
            shown.append(f"{_plain(place)}: {severity}: {message}")
            shown += excerpt(lines.get(found.path, []), found.line, found.column)
            shown += [f"    {_plain(found.cure)}", ""]
    return "\n".join([*shown, _total(findings, is_diff=is_diff)]) + "\n"


def excerpt(lines: list[str], number: int, column: int) -> list[str]:
    """A line as it can be shown, and a caret under its column; nothing of a blank one."""
    line = lines[number - 1] if number <= len(lines) else ""
    start = max(0, column - 1 - _WIDTH // 2) if len(line) > _WIDTH else 0
    before = _plain(line[start : column - 1].replace("\t", " "))
    after = _plain(line[column - 1 : start + _WIDTH].replace("\t", " "))
    return [f"    {before}{after}", f"    {' ' * len(before)}^"] if line.strip() else []


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _total(findings: Iterable[Finding], *, is_diff: bool = False) -> str:
    """How many findings of each severity there are, in one line; of a difference, of each kind."""
    if is_diff:
        kinds = Counter(found.rule for found in findings)
        return ", ".join(f"{kinds[kind]} {kind}" for kind in kinds) or "no difference in meaning"
    counts = Counter("accepted" if found.accepted else found.severity for found in findings)
    words = {
        kind: f"{counts[kind]} {kind}{'s' * (counts[kind] > 1 and kind != 'accepted')}"
        for kind in ("error", "warning", "note", "accepted")
    }
    return ", ".join(words[kind] for kind in words if counts[kind]) or "no findings"


def as_json(findings: Iterable[Finding]) -> str:
    """A list of objects, one a finding; accepted ones hold the reason."""
    names = ("rule", "severity", "line", "column", "value", "message", "cure")
    records = []
    for found in findings:
        record = {"file": str(found.path)} | {name: getattr(found, name) for name in names}
        records.append(record | ({"accepted": found.accepted} if found.accepted else {}))
    return json.dumps({"findings": records}, indent=2) + "\n"


def github(findings: Iterable[Finding]) -> str:
    """One workflow command a finding, which annotates its line in a pull request.

    GitHub shows ten of a kind for each step, so the total follows.
    """
    findings = list(findings)
    lines = []
    for found in (one for one in findings if not one.accepted):
        kind = "notice" if found.severity == "note" else found.severity
        place = f"file={_escape(str(found.path), ':,')},line={found.line},col={found.column}"
        told = _escape(f"{found.message}; {found.cure}")
        lines.append(f"::{kind} {place},title={found.rule}::{told}")
    return "\n".join([*lines, _total(findings)]) + "\n"


def _escape(value: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in value)


def sarif(findings: Iterable[Finding]) -> str:
    """A SARIF 2.1.0 log; accepted findings are results with a suppression and its reason."""
    findings = list(findings)
    rules = sorted({found.rule for found in findings})
    described = [_sarif_rule(every_rule()[rule]) for rule in rules]
    driver = {"name": "policy-lint", "version": __version__, "rules": described}
    results = [_sarif_result(found, rules.index(found.rule)) for found in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\nExample: {rule.example}\nCure: {rule.cure}"},
        "helpUri": rule.file.as_uri(),
        "defaultConfiguration": {"level": rule.severity},
    }


def _sarif_result(found: Finding, index: int) -> dict[str, Any]:
    uri = _uri(found.path)
    # The same while other lines of the file change.
    identity = hashlib.sha256(f"{uri} {found.rule} {found.field} {found.value}".encode())
    region = {"startLine": found.line, "startColumn": found.column}
    location = {"artifactLocation": {"uri": uri}, "region": region}
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
    full, here = path.resolve(), Path.cwd()
    is_here = full.is_relative_to(here)
    return quote(full.relative_to(here).as_posix()) if is_here else full.as_uri()


FORMATS: Mapping[str, Callable[[list[Finding]], str]] = {
    "json": as_json,
    "sarif": sarif,
    "github": github,
}
