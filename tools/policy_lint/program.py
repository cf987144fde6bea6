"""What a policy says of a program: each violation, and the line of the policy it comes from."""

import json
from dataclasses import asdict, replace
from typing import Any

from sandbox.check.checker import Violation, check
from sandbox.policy.loader import Policy
from tools.policy_lint.formats import excerpt
from tools.policy_lint.subject import Subject

# Rules of the checker that one field of the policy decides; all others are the checker's own.
_FIELDS = {
    "source-too-long": ("limits", "source_bytes"),
    "import": ("allowed_imports",),
    "dunder": ("allowed_dunders",),
}


def origin(violation: Violation, policy: Policy) -> tuple[str, str]:
    """The field and the entry that a violation comes from; empty where it is the checker's own."""
    value = violation.value
    if violation.rule in _FIELDS:
        return ".".join(_FIELDS[violation.rule]), ""
    if violation.rule == "blocked-word":
        words = [word.pattern for word in policy.blocked_words]
        hits = [word.pattern for word in policy.blocked_words if word.search(value)]
        return "blocked_words", (hits or words)[0]
    if violation.rule.startswith("dangerous-"):
        first, second = ("dangerous_attrs", "dangerous_names")
        if violation.rule == "dangerous-name":
            first, second = second, first
        for field in (first, second):
            for entry in sorted(getattr(policy, field)):
                if value in {entry, entry.rpartition(".")[2]}:
                    return field, entry
    return "", ""


def judge(
    source: str, name: str, subject: Subject, policy: Policy, as_json: bool
) -> tuple[str, bool]:
    """What to print about a program, and whether the policy allows it."""
    records = [
        asdict(violation) | {"policy": _from(violation, source, subject, policy)}
        for violation in check(source, policy)
    ]
    if as_json:
        return json.dumps({"program": name, "violations": records}, indent=2) + "\n", not records
    lines = source.split("\n")
    parts = [_paragraph(record, name, lines) for record in records]
    count = f"{len(records)} violation{'s' if len(records) > 1 else ''}"
    parts.append(f"{name}: {count}\n" if records else f"{name}: allowed\n")
    return "\n".join(parts), not records


def _from(
    violation: Violation, source: str, subject: Subject, policy: Policy
) -> dict[str, Any] | None:
    """The place of the policy that a violation comes from; None where it is the checker's own."""
    field, entry = origin(violation, policy)
    if field == "allowed_dunders":
        opened = replace(policy, allowed_dunders=policy.allowed_dunders | {violation.value})
        places = [(one.line, one.column) for one in check(source, opened)]
        if (violation.line, violation.column) in places:
            return None
    if not field:
        return None
    place = subject.place((field, entry) if entry else tuple(field.split(".")))
    where = {"file": str(place.path), "line": place.line, "column": place.column}
    return where | {"field": field, "entry": entry}


def _paragraph(record: dict[str, Any], name: str, lines: list[str]) -> str:
    shown = [f"{name}:{record['line']}:{record['column']}: {record['message']} [{record['rule']}]"]
    if record["line"] <= len(lines) and (line := lines[record["line"] - 1]).strip():
        shown += excerpt(line, record["column"])
    if origin := record["policy"]:
        place = f"{origin['file']}:{origin['line']}:{origin['column']}"
        shown.append(f"    from {place}: {origin['field']} {origin['entry']}".rstrip())
    else:
        shown.append("    from the checker itself: no field of the policy changes it")
    return "\n".join([*shown, ""])
