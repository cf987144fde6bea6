"""Runs the rules that are wanted over one policy file."""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor

from sandbox.policy.document import Finding
from tools.policy_lint.rules import BY_GUESTS, QUICK, acceptances, checker, families
from tools.policy_lint.subject import Subject


def lint(subject: Subject, wanted: Collection[str]) -> list[Finding]:
    """All findings of the rules `wanted`, in the order of the file; accepted ones are marked."""
    chosen = families(wanted)
    if subject.policy is None:
        return in_order(one for one in subject.document.findings if one.rule in wanted)
    quick = [checker(family) for family in QUICK if family in chosen]
    slow = [checker(family) for family in BY_GUESTS if family in chosen]
    with ThreadPoolExecutor(1) as pool:  # guests take as long as all else, on another core
        try:
            waiting = pool.submit(lambda: [one for check in slow for one in check(subject)])
            found = [one for check in quick for one in check(subject)] + waiting.result()
        finally:
            if slow:
                subject.guests.close()
    found = [one for one in found if one.rule in wanted]
    accepted = acceptances.apply(subject, in_order(found), wanted)
    return in_order(one for one in accepted if one.rule in wanted)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by file and place, each once."""
    return sorted(set(findings), key=_place)


def _place(found: Finding) -> tuple[str, int, int, str, str]:
    return str(found.path), found.line, found.column, found.rule, found.message
