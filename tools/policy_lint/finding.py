"""What a rule is, and what a finding is."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.policy.document import Place

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Rule:
    """One thing that is looked for; `example` is what is found, `cure` what makes it clean."""

    id: str
    severity: Severity
    summary: str
    why: str
    example: str
    cure: str


@dataclass(frozen=True)
class Finding:
    """One place that a rule objects to; `accepted` is the reason given for leaving it so."""

    rule: Rule
    path: Path
    line: int
    column: int
    value: str
    message: str
    cure: str
    accepted: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place}: {self.rule.severity}: {self.message}; {self.cure} [{self.rule.id}]"


def finding(
    rule: Rule, path: Path, place: Place, message: str, cure: str, value: str = ""
) -> Finding:
    """A finding at line and column `place` of a file."""
    return Finding(rule, path, *place, value, message, cure)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by file and place, each once."""
    key = lambda found: (str(found.path), found.line, found.column, found.rule.id, found.message)  # noqa: E731
    return sorted(set(findings), key=key)
