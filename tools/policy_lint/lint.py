"""Runs the rules that are wanted over one policy file."""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sandbox.policy.document import Finding
from tools.policy_lint.rules import BY_GUESTS, QUICK, acceptances, checker, families
from tools.policy_lint.subject import Subject


def lint(subject: Subject, wanted: Collection[str]) -> list[Finding]:
    """All findings of the rules `wanted`, in the order of the file; accepted ones are marked."""
    policy = subject.policy
    if policy is None:
        return in_order(one for one in subject.document.findings if one.rule in wanted)
    chosen = families(wanted)

    def found(checks: list[Any]) -> list[Finding]:
        return [one for check in checks for one in check(subject, policy) if one.rule in wanted]

    with ThreadPoolExecutor(1) as pool:  # guests are asked first, as they take the longest
        by_guests = pool.submit(found, [checker(name) for name in BY_GUESTS if name in chosen])
        findings = found([checker(name) for name in QUICK if name in chosen])
        findings += by_guests.result()
    return in_order(acceptances.apply(subject, in_order(findings), wanted))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by file and place, each once."""
    return sorted(set(findings), key=_place)


def _place(found: Finding) -> tuple[str, int, int, str, str]:
    return str(found.path), found.line, found.column, found.rule, found.message
