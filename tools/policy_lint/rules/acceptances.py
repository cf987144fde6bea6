"""Findings that the owner accepts in place, by a comment that names rule, value and reason.

    allowed_imports:
      - numpy  # accept import-impure: its file functions meet Landlock and a file size of 0

The comment stands on the line of the finding, or alone on the line above it. At the name of a field
it also names what is accepted there: `dangerous_names:  # accept name-missing quit: REASON`.

acceptance-unused (error): An acceptance that matches no finding
    What it excused is gone, or it never matched: left there, it would excuse the next mistake on
    that line unseen.
    Example: - math  # accept import-impure: reviewed
    Cure: Delete the comment.

acceptance-unreasoned (error): An acceptance without a known rule, a value or a reason
    A reviewer must be able to judge it; without a reason nothing is accepted. At the name of a
    field, where all that the field lacks is told, it must name the one value that it accepts.
    Example: dangerous_names:  # accept name-missing: quit is harmless
    Cure: Write `# accept RULE VALUE: REASON`; the value may be left out on an entry's own line.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from sandbox.policy.document import LINE_END, Finding, Place
from tools.policy_lint.rules import rules
from tools.policy_lint.subject import Findings, Policy, Subject

_COMMENT = re.compile(
    r"(?<!\S)(?P<all>#\s*accept\b[ \t]*(?P<rule>[\w-]*)[ \t]*(?P<value>[^:#]*?)[ \t]*"
    r"(?::[ \t]*(?P<reason>.*?))?[ \t]*)(?=#\s*accept\b|$)"
)

_OF_THE_MACHINE = ("not-tried", "path-missing")


@dataclass(frozen=True)
class _Acceptance:
    rule: str
    value: str
    reason: str
    place: Place  # of the comment
    line: int = 0  # of what it accepts
    at_heading: bool = False

    @property
    def is_vague(self) -> bool:
        return self.at_heading and not self.value

    def matches(self, found: Finding) -> bool:
        here = (self.place.path, self.line, self.rule) == (found.path, found.line, found.rule)
        return here and not self.is_vague and self.value in ("", found.value)

    def finding(self, rule: str, message: str, cure: str) -> Finding:
        return Finding(*self.place, "", self.rule, message, cure, rule, rules()[rule].severity)


def check(subject: Subject, _: Policy) -> Findings:
    """Acceptances that accept nothing, whatever is found."""
    never = ("loading", "acceptances")
    known = {name for name, rule in rules().items() if rule.file.stem not in never}
    for one in _acceptances(subject):
        if one.rule not in known:
            message = f"{one.rule or 'this'} is no rule that can be accepted"
        elif not one.reason:
            message = "no reason is given"
        elif one.is_vague:
            message = f"it does not say what is accepted of all that {one.rule} may find here"
        else:
            continue
        cure = f"delete the comment, or write: accept {one.rule or 'RULE'} VALUE: REASON"
        yield one.finding("acceptance-unreasoned", message, cure)


def apply(subject: Subject, findings: list[Finding], ran: Collection[str]) -> Findings:
    """The findings, those that are accepted marked so, and acceptances that match none.

    `ran` are the rules that were looked for: an acceptance of another cannot be told to be unused.
    Nor can one of what is so on some machines and not on others.
    """
    acceptances = [one for one in _acceptances(subject) if one.reason and not one.is_vague]
    used = set()
    for found in findings:
        matching = [one for one in acceptances if one.matches(found)]
        used.update(matching)
        yield replace(found, accepted=matching[0].reason) if matching else found
    if "acceptance-unused" in ran:
        for one in acceptances:
            if one not in used and one.rule in ran and one.rule not in _OF_THE_MACHINE:
                message = f"there is no {one.rule}{one.value and f' of {one.value}'} here to accept"
                yield one.finding("acceptance-unused", message, "delete the comment")


def _acceptances(subject: Subject) -> Iterator[_Acceptance]:
    for path, raw in subject.document.files.items():
        waiting: list[_Acceptance] = []
        for number, line in enumerate(LINE_END.split(raw.decode("utf-8", "replace")), 1):
            for match in _COMMENT.finditer(line):
                if "-" in match["rule"] or not match["value"]:  # else it is no more than a comment
                    place = Place(path, number, match.start("all") + 1)
                    reason = match["reason"] or ""
                    waiting.append(_Acceptance(match["rule"], match["value"], reason, place))
            if line.strip() and not line.lstrip().startswith("#"):
                at_heading = bool(re.match(r"\w+:", line))
                yield from (replace(one, line=number, at_heading=at_heading) for one in waiting)
                waiting = []
        yield from waiting
