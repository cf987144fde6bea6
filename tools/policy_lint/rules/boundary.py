"""Whether the bot would serve under the policy: it is started here as the bot starts it.

not-tried (warning): No guest could be run here, so that some rules were not looked for
    What modules expose, and whether the interpreter can live with the limits and denials, is found
    by running guests of the real sandbox.
    Example: a kernel without seccomp
    Cure: Run the lint where the bot can run; the message says what is in the way.

layer-absent (error): A layer that the policy requires cannot be had on this machine
    The bot refuses to serve without it.
    Example: required_layers with landlock on a kernel without it
    Cure: The message says what the machine needs; else accept it where the bot runs elsewhere.

probe-failed (error): Something that must be impossible is possible
    The self-test tried it in a real guest, past the checker, and no layer refused.
    Example: a socket can be opened
    Cure: Deny what the message names; the other rules say by which entry.

import-fails (error): The allowed modules cannot be imported
    The zygote imports all of them when it starts, so the bot would not start. Shown by starting it.
    Example: - mypackage, which needs a library that is not installed
    Cure: Repair or delete the module that the reason names.
"""

import re
from dataclasses import asdict, replace
from typing import Any

from sandbox.kernel import layers
from sandbox.policy.document import Finding
from tools.policy_lint.guests import ROOMY_RLIMITS
from tools.policy_lint.known import NOW_AND_THEN
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """Why the bot would not serve: limits, modules, denials, layers, or the machine."""
    guests = subject.guests
    if not guests.start.reason:
        return
    free: dict[str, Any] = {"rlimits": ROOMY_RLIMITS, "denied_syscalls": frozenset()}
    if guests.exercise(**free):
        yield _unable(subject, guests.exercise(modules_too=False, **free))
    elif guests.exercise() and not guests.exercise(rlimits=ROOMY_RLIMITS):
        yield from _limits(subject, policy)
    else:
        yield from _refusals(subject)


def _unable(subject: Subject, reason: str) -> Finding:
    """What is to blame where even a free guest cannot run: the modules, or the machine."""
    if reason:
        message = f"no guest could be run, so that limits and modules were not tried: {reason}"
        return subject.finding("not-tried", ("version",), message, "run it where the bot can run")
    message = f"the zygote cannot import the allowed modules: {subject.guests.start.reason}"
    cure = "repair the one that the reason names, or delete it"
    return subject.finding("import-fails", ("allowed_imports",), message, cure)


def _limits(subject: Subject, policy: Policy) -> Findings:
    """Kernel limits under which a guest cannot do what any program may, one after the other."""

    def failure(name: str, value: int) -> str:
        limit: Any = {name: value}
        return subject.guests.exercise(rlimits=replace(ROOMY_RLIMITS, **limit))

    for name, most in asdict(ROOMY_RLIMITS).items():
        value = getattr(policy.rlimits, name)
        if value < most and (reason := failure(name, value)):
            message = f"with {name} {value} an ordinary program fails: {reason}"
            enough = max(2 * value, 1)
            while enough < most and failure(name, enough):
                enough *= 2
            cure = f"write at least {min(enough, most)}"
            yield subject.finding("limit-too-small", ("rlimits", name), message, cure)


def _refusals(subject: Subject) -> Findings:
    """Denials that the interpreter or the self-test cannot do with; else layers and probes."""
    start = subject.guests.start
    told = re.match("layer (.+?) is not in force", start.reason)
    layer = told[1] if told and told[1] in layers.CURES else ""
    entry, call = "", ""
    if not layer:
        entry, call = subject.guests.needed_syscalls([*subject.entries("denied_syscalls")])
    if entry in NOW_AND_THEN:
        return  # told without a guest
    if entry:  # a stricter policy, which the self-test may take for an open one
        reason = "its self-test makes the call" if start.failed else start.reason
        message = f"the bot cannot do without {call}: {reason}"
        cure = "delete it" if entry == call else f"name its other calls, without {call}"
        yield subject.finding("syscall-needed", ("denied_syscalls", entry), message, cure)
    elif start.failed:
        for probe in start.failed:
            message = f"the probe {probe.name!r} got through: {probe.detail}"
            cure = "deny what it calls, or require the layer that refuses it"
            yield subject.finding("probe-failed", ("denied_syscalls",), message, cure, probe.name)
    else:
        message, _, cure = start.reason.partition("; cure: ")
        at, cure = ("required_layers", layer), cure or "see SECURITY.md"
        yield subject.finding("layer-absent", at, message, cure)
