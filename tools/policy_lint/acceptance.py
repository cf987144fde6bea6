"""Findings that the owner has accepted in place, by a comment that names the rule and the reason.

    allowed_imports:
      - numpy  # accept import-impure: its file functions meet Landlock and a file size of 0

The comment stands on the line of the finding, or alone on the line above it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sandbox.policy.document import LINE_END
from tools.policy_lint.finding import Finding, Rule, finding
from tools.policy_lint.subject import Subject

_COMMENT = re.compile(
    r"(?:^|\s)#\s*accept\b[ \t]*([\w-]*)[ \t]*(?::[ \t]*(.*?))?[ \t]*(?=#\s*accept\b|$)"
)

UNUSED = Rule(
    "acceptance-unused",
    "error",
    "An acceptance that matches no finding",
    "What it excused is gone, or it never matched: left there, it would excuse the next mistake "
    "on that line unseen.",
    "- math  # accept import-impure: reviewed",
    "Delete the comment.",
)
UNREASONED = Rule(
    "acceptance-unreasoned",
    "error",
    "An acceptance without a known rule and a reason",
    "A reviewer must be able to judge it; without a reason nothing is accepted.",
    "- numpy  # accept import-impure",
    "Write `# accept RULE: REASON`.",
)
RULES = {rule.id: rule for rule in (UNUSED, UNREASONED)}


@dataclass(frozen=True)
class _Acceptance:
    rule: str
    reason: str
    line: int  # of what it accepts
    place: tuple[int, int]  # of the comment


def apply(
    subject: Subject, findings: Iterable[Finding], known: Iterable[str], ran: Iterable[str]
) -> Iterator[Finding]:
    """The findings, those that are accepted marked so, and findings about acceptances.

    `known` are the ids of all rules, `ran` of those that were looked for: an acceptance of another
    one cannot be told to be unused.
    """
    known, ran = set(known), set(ran)
    acceptances = []
    for acceptance in _acceptances(subject.document.text):
        if acceptance.reason and acceptance.rule in known:
            acceptances.append(acceptance)
            continue
        message = "no reason is given"
        if acceptance.rule not in known:
            message = f"{acceptance.rule or 'this'} is no rule that can be accepted"
        cure = "delete the comment, or write: accept RULE: REASON"
        yield finding(UNREASONED, subject.path, acceptance.place, message, cure, acceptance.rule)
    used = set()
    for found in findings:
        matching = [a for a in acceptances if (a.rule, a.line) == (found.rule.id, found.line)]
        used.update(matching)
        yield replace(found, accepted=matching[0].reason) if matching else found
    for acceptance in acceptances:
        if acceptance not in used and acceptance.rule in ran:
            message = f"there is no {acceptance.rule} here to accept"
            cure = "delete the comment"
            yield finding(UNUSED, subject.path, acceptance.place, message, cure, acceptance.rule)


def _acceptances(text: str) -> Iterator[_Acceptance]:
    lines = LINE_END.split(text)
    waiting: list[tuple[str, str, tuple[int, int]]] = []
    for number, line in enumerate(lines, 1):
        here = [
            (match[1], match[2] or "", (number, match.start() + 1 + (match[0][0] != "#")))
            for match in _COMMENT.finditer(line)
        ]
        waiting += here
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        for rule, reason, place in waiting:
            yield _Acceptance(rule, reason, number, place)
        waiting = []
    for rule, reason, place in waiting:
        yield _Acceptance(rule, reason, 0, place)
