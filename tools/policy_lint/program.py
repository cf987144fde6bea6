"""What a policy says of a program: each violation, and the line of the policy it comes from."""

import json
from dataclasses import asdict
from typing import Any

from sandbox.check.checker import Violation, check
from sandbox.policy.loader import Policy
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
    violations = check(source, policy)
    records = [_record(violation, subject, policy) for violation in violations]
    if as_json:
        return json.dumps({"program": name, "violations": records}, indent=2) + "\n", not records
    lines = source.split("\n")
    parts = [_paragraph(record, name, lines) for record in records]
    parts.append(f"{name}: {len(records)} violations\n" if records else f"{name}: allowed\n")
    return "\n".join(parts), not records


def _record(violation: Violation, subject: Subject, policy: Policy) -> dict[str, Any]:
    field, entry = origin(violation, policy)
    record = asdict(violation) | {"policy": None}
    if field:
        if entry:
            line, column = subject.place_of(field, entry)
        else:
            line, column = subject.document.place(tuple(field.split(".")), key=True)
        record["policy"] = {
            "file": str(subject.path),
            "line": line,
            "column": column,
            "field": field,
            "entry": entry,
        }
    return record


def _paragraph(record: dict[str, Any], name: str, lines: list[str]) -> str:
    shown = [f"{name}:{record['line']}:{record['column']}: {record['message']} [{record['rule']}]"]
    if record["line"] <= len(lines) and (line := lines[record["line"] - 1]).strip():
        before = "".join("\t" if c == "\t" else " " for c in line[: record["column"] - 1])
        shown += [f"    {line}", f"    {before}^"]
    origin = record["policy"]
    if origin:
        place = f"{origin['file']}:{origin['line']}:{origin['column']}"
        shown.append(f"    from {place}: {origin['field']} {origin['entry']}".rstrip())
    else:
        shown.append("    from the checker itself: no field of the policy changes it")
    return "\n".join([*shown, ""])
