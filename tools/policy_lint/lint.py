"""Runs every family of rules over one policy file."""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from sandbox.check.checker import check
from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.loader import Policy
from tools.policy_lint import (
    acceptance,
    denials,
    deployment,
    identity,
    imports,
    limits,
    names,
    structure,
    words,
)
from tools.policy_lint import program as programs
from tools.policy_lint.finding import Finding, Rule, in_order
from tools.policy_lint.honest import HONEST
from tools.policy_lint.interpreter import Interpreter
from tools.policy_lint.subject import Subject

NOT_TRIED = Rule(
    "not-tried",
    "warning",
    "No guest could be run here, so that some rules were not looked for",
    "What modules expose, and whether the interpreter can live with the limits and denials, is "
    "found by running guests of the real sandbox.",
    "a kernel without seccomp",
    "Run the lint where the bot can run; the message says what is in the way.",
)
HONEST_REFUSED = Rule(
    "honest-refused",
    "error",
    "An honest program is refused",
    "Of a built-in list of programs as people write them, none should meet a dangerous name or "
    "attribute.",
    "dangerous_names with print",
    "Delete the entry.",
)
WARM_UP_REFUSED = Rule(
    "warm-up-refused",
    "error",
    "A warm-up program breaks the rules of this file",
    "It runs with the rights of the fork server, and so it must do nothing that others may not; "
    "the bot refuses to serve.",
    "warm_up with import os",
    "Mend the program.",
)
_FAMILIES = (
    structure,
    acceptance,
    imports,
    names,
    words,
    limits,
    denials,
    identity,
    deployment,
)
RULES: dict[str, Rule] = {
    **{rule.id: rule for rule in (NOT_TRIED, HONEST_REFUSED, WARM_UP_REFUSED)},
    **{name: rule for family in _FAMILIES for name, rule in family.RULES.items()},
}


def lint(subject: Subject, wanted: Collection[str]) -> list[Finding]:
    """All findings of the rules `wanted`, in the order of the file; accepted ones are marked."""
    policy = subject.policy
    if policy is None:
        return in_order(one for one in structure.find(subject) if one.rule.id in wanted)
    acceptable = RULES.keys() - structure.RULES.keys() - acceptance.RULES.keys()
    found = [one for one in _find(subject, policy, wanted) if one.rule.id in wanted]
    found = list(acceptance.apply(subject, found, acceptable, wanted))
    return in_order(one for one in found if one.rule.id in wanted)


def _find(subject: Subject, policy: Policy, wanted: Collection[str]) -> list[Finding]:
    """Everything about a policy that loads; what takes guests and processes runs meanwhile."""
    interpreter = Interpreter(policy)
    with ThreadPoolExecutor() as pool:
        slow: list[Future[list[Finding]]] = [
            pool.submit(list, find(subject, policy, interpreter))
            for find, rules in _SLOW.items()
            if not rules.isdisjoint(wanted)
        ]
        found = [
            *imports.find(subject, interpreter),
            *names.find(subject, policy),
            *limits.find(subject, policy),
            *denials.find(subject, policy),
            *identity.find(subject, policy),
            *deployment.find(subject, policy),
            *_find_honest(subject, policy),
            *_find_warm_up(subject, policy),
        ]
    return found + [one for future in slow for one in future.result()]


_Finder = Callable[[Subject, Policy, Interpreter], Iterator[Finding]]


def _find_by_guests(
    subject: Subject, policy: Policy, interpreter: Interpreter
) -> Iterator[Finding]:
    if interpreter.limits_are_to_blame:
        yield from limits.find_failing(subject, policy, interpreter)
    elif not interpreter.trial.passed and interpreter.modules_are_to_blame:
        yield from imports.find_failing(subject, interpreter)
    elif not interpreter.trial.passed:
        yield from denials.find_failing(subject, interpreter)
    try:
        answer = interpreter.exposed
    except SandboxUnavailable as error:
        message = f"no guest could be run: {error}"
        yield subject.at_heading(
            NOT_TRIED, "version", message, "run the lint where the bot can run"
        )
        return
    yield from imports.find_exposed(subject, policy, answer)
    yield from names.find_unknown(subject, policy, answer)


def _find_words(subject: Subject, policy: Policy, _: Interpreter) -> Iterator[Finding]:
    return words.find(subject, policy)


_SLOW: dict[_Finder, frozenset[str]] = {
    _find_by_guests: frozenset(
        {
            imports.EXPOSES.id,
            imports.FAILS.id,
            names.NAME_UNKNOWN.id,
            names.ATTR_UNKNOWN.id,
            limits.TOO_SMALL.id,
            denials.NEEDED.id,
        }
    ),
    _find_words: frozenset(words.RULES),
}


def _find_honest(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """Entries for which an honest program is refused; words have a rule of their own."""
    wordless = replace(policy, blocked_words=())  # words are tried elsewhere, with a time limit
    refused: dict[tuple[str, str], str] = {}
    for source in HONEST:
        for violation in check(source, wordless):
            field, entry = programs.origin(violation, wordless)
            if field in {"dangerous_names", "dangerous_attrs"} and entry:
                refused.setdefault((field, entry), source.split("\n")[violation.line - 1].strip())
    for (field, entry), line in refused.items():
        message = f"{entry} refuses honest programs such as {line}"
        yield subject.at_entry(HONEST_REFUSED, field, entry, message, "delete it")


def _find_warm_up(subject: Subject, policy: Policy) -> Iterator[Finding]:
    for at, source in subject.document.strings("warm_up"):
        for violation in check(source, policy)[:1]:
            message = f"line {violation.line} of this program: {violation.message}"
            yield subject.at_value(WARM_UP_REFUSED, at, message, "delete it")
