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
    "source-too-long": "limits.source_bytes",
    "import": "allowed_imports",
    "dunder": "allowed_dunders",
}


def origin(violation: Violation, policy: Policy) -> tuple[str, str]:
    """The field and the entry that a violation comes from; empty where it is the checker's own."""
    rule, value = violation.rule, violation.value
    if rule == "blocked-word":
        hits = [word.pattern for word in policy.blocked_words if word.search(value)]
        return "blocked_words", [*hits, policy.blocked_words[0].pattern][0]
    if rule.startswith("dangerous-"):
        fields = ("dangerous_attrs", "dangerous_names")
        for field in reversed(fields) if rule == "dangerous-name" else fields:
            for entry in sorted(getattr(policy, field)):
                if value in {entry, entry.rpartition(".")[2]}:
                    return field, entry
    return _FIELDS.get(rule, ""), ""


def judge(source: str, subject: Subject, policy: Policy) -> list[dict[str, Any]]:
    """Each violation of a program, as fields of JSON, with the place of the policy."""
    records = []
    for violation in check(source, policy):
        field, entry = origin(violation, policy)
        if field == "allowed_dunders":  # does that open it?
            opened = replace(policy, allowed_dunders=policy.allowed_dunders | {violation.value})
            left = [(one.line, one.column) for one in check(source, opened)]
            field = "" if (violation.line, violation.column) in left else field
        place = subject.place((field, entry) if entry else tuple(field.split(".")))
        where = {"file": str(place.path), "line": place.line, "column": place.column}
        where |= {"field": field, "entry": entry}
        records.append(asdict(violation) | {"policy": where if field else None})
    return records


def as_json(records: list[dict[str, Any]], name: str, _: str) -> str:
    """Violations as JSON."""
    return json.dumps({"program": name, "violations": records}, indent=2) + "\n"


def as_text(records: list[dict[str, Any]], name: str, source: str) -> str:
    """Violations for people, each with its line and a caret."""
    parts = []
    for record in records:
        place = f"{name}:{record['line']}:{record['column']}"
        parts.append(f"{place}: {record['message']} [{record['rule']}]")
        parts += excerpt(source.split("\n"), record["line"], record["column"])
        told = "the checker itself: no field of the policy changes it"
        if where := record["policy"]:
            told = f"{where['file']}:{where['line']}:{where['column']}: "
            told += f"{where['field']} {where['entry']}".rstrip()
        parts += [f"    from {told}", ""]
    count = f"{len(records)} violation{'s' * (len(records) > 1)}" if records else "allowed"
    return "\n".join([*parts, f"{name}: {count}"]) + "\n"
