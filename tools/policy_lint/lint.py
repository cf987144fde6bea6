"""Runs the rules that are wanted over one policy file."""

from collections.abc import Collection, Iterable

from sandbox.policy.document import Finding
from tools.policy_lint.rules import BY_GUESTS, QUICK, acceptances, checker, families
from tools.policy_lint.subject import Subject


def lint(subject: Subject, wanted: Collection[str]) -> list[Finding]:
    """All findings of the rules `wanted`, in the order of the file; accepted ones are marked."""
    if subject.policy is None:
        return in_order(one for one in subject.document.findings if one.rule in wanted)
    chosen = families(wanted)
    if not chosen.isdisjoint(BY_GUESTS):
        subject.guests.begin()
    checks = [checker(family) for family in (*QUICK, *BY_GUESTS) if family in chosen]
    found = [one for check in checks for one in check(subject, subject.policy)]
    found = in_order(one for one in found if one.rule in wanted)
    return in_order(acceptances.apply(subject, found, wanted))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by file and place, each once."""
    return sorted(
        set(findings),
        key=lambda one: (str(one.path), one.line, one.column, one.rule, one.message),
    )
