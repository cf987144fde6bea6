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
from tools.policy_lint.subject import Subject

_COMMENT = re.compile(
    r"(?:^|\s)(?P<all>#\s*accept\b[ \t]*(?P<rule>[\w-]*)[ \t]*(?P<value>[^:#]*?)[ \t]*"
    r"(?::[ \t]*(?P<reason>.*?))?[ \t]*)(?=#\s*accept\b|$)"
)


@dataclass(frozen=True)
class _Acceptance:
    rule: str
    value: str
    reason: str
    place: Place  # of the comment
    line: int  # of what it accepts
    at_heading: bool

    def matches(self, found: Finding) -> bool:
        here = (self.place.path, self.line) == (found.path, found.line)
        named = self.value == found.value or not (self.value or self.at_heading)
        return here and self.rule == found.rule and named


def check(subject: Subject) -> Iterator[Finding]:
    """Acceptances that accept nothing, whatever is found."""
    known = {
        name for name, rule in rules().items() if rule.family not in ("loading", "acceptances")
    }
    for one in _acceptances(subject):
        message = "no reason is given"
        if one.rule not in known:
            message = f"{one.rule or 'this'} is no rule that can be accepted"
        elif one.reason and (one.value or not one.at_heading):
            continue
        elif one.reason:
            message = f"it does not say what is accepted of all that {one.rule} may find here"
        cure = f"delete the comment, or write: accept {one.rule or 'RULE'} VALUE: REASON"
        yield subject.finding("acceptance-unreasoned", one.place, message, cure, one.rule)


def apply(subject: Subject, findings: list[Finding], ran: Collection[str]) -> Iterator[Finding]:
    """The findings, those that are accepted marked so, and acceptances that match none.

    `ran` are the rules that were looked for: an acceptance of another cannot be told to be unused.
    """
    acceptances = [one for one in _acceptances(subject) if one.reason]
    used = set()
    for found in findings:
        matching = [one for one in acceptances if one.matches(found)]
        used.update(matching)
        yield replace(found, accepted=matching[0].reason) if matching else found
    for one in acceptances:
        if one not in used and one.rule in ran and (one.value or not one.at_heading):
            message = f"there is no {one.rule}{one.value and f' of {one.value}'} here to accept"
            yield subject.finding(
                "acceptance-unused", one.place, message, "delete the comment", one.rule
            )


def _acceptances(subject: Subject) -> Iterator[_Acceptance]:
    for path, raw in subject.document.files.items():
        waiting: list[tuple[re.Match[str], Place]] = []
        for number, line in enumerate(LINE_END.split(raw.decode("utf-8", "replace")), 1):
            waiting += [
                (match, Place(path, number, match.start("all") + 1))
                for match in _COMMENT.finditer(line)
                if "-" in match["rule"] or not match["value"]  # else it is no more than a comment
            ]
            if line.strip() and not line.lstrip().startswith("#"):
                is_heading = bool(re.match(r"\w+:", line))
                yield from (_acceptance(*one, number, is_heading) for one in waiting)
                waiting = []
        yield from (_acceptance(*one, 0, False) for one in waiting)


def _acceptance(match: re.Match[str], place: Place, line: int, is_heading: bool) -> _Acceptance:
    return _Acceptance(
        match["rule"], match["value"], match["reason"] or "", place, line, is_heading
    )
