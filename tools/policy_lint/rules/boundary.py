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
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.kernel import layers
from sandbox.policy.document import Finding
from sandbox.sandbox import BoundaryOpen
from tools.policy_lint.guests import ROOMY_RLIMITS
from tools.policy_lint.rules.syscalls import NOW_AND_THEN
from tools.policy_lint.subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Why the bot would not serve: limits, modules, denials, layers, or the machine."""
    policy, guests = subject.policy, subject.guests
    assert policy
    if not guests.trial.reason:
        return
    free: dict[str, Any] = {"rlimits": ROOMY_RLIMITS, "denied_syscalls": frozenset[str]()}
    if guests.exercise(**free).reason:
        yield from _unable(subject, guests.exercise(modules_too=False, **free).reason)
    elif guests.exercise().reason and not guests.exercise(rlimits=ROOMY_RLIMITS).reason:
        yield from _limits(subject)
    else:
        yield from _refusals(subject)


def _unable(subject: Subject, reason: str) -> Iterator[Finding]:
    """What is to blame where even a free guest cannot run: the modules, or the machine."""
    guests = subject.guests
    if not reason:
        message = f"the zygote cannot import the allowed modules: {guests.trial.reason}"
        cure = "repair the one that the reason names, or delete it"
        yield subject.at_heading("import-fails", "allowed_imports", message, cure)
    else:
        message = f"no guest could be run, so that limits and modules were not tried: {reason}"
        yield subject.at_heading("not-tried", "version", message, "run it where the bot can run")


def _limits(subject: Subject) -> Iterator[Finding]:
    """Kernel limits under which a guest cannot do what any program may, one after the other."""
    roomy, guests = asdict(ROOMY_RLIMITS), subject.guests
    assert subject.policy
    for name, value in asdict(subject.policy.rlimits).items():
        if value < roomy[name]:
            with_limit: Any = {name: value}
            reason = guests.exercise(rlimits=replace(ROOMY_RLIMITS, **with_limit)).reason
            if reason:
                message = f"with {name} {value} an ordinary program fails: {reason}"
                cure = f"write at least {_enough(subject, name, value, roomy[name])}"
                yield subject.at_number("limit-too-small", ("rlimits", name), message, cure)


def _enough(subject: Subject, name: str, value: int, most: int) -> int:
    """A value that suffices, found by doubling."""
    while (value := max(2 * value, 1)) < most:
        with_limit: Any = {name: value}
        if not subject.guests.exercise(rlimits=replace(ROOMY_RLIMITS, **with_limit)).reason:
            return value
    return most


def _refusals(subject: Subject) -> Iterator[Finding]:
    """Denials that the interpreter or the self-test cannot do with; else layers and probes."""
    guests = subject.guests
    refused = guests.sandbox if isinstance(guests.sandbox, SandboxUnavailable) else None
    told = re.match("layer (.+?) is not in force", str(refused or ""))
    layer = told[1] if told and told[1] in layers.CURES else ""
    entry, call = "", ""
    if not layer:
        entries = [entry for entry, _ in subject.entries("denied_syscalls")]
        entry, call = guests.needed_syscalls(entries)
    if entry in NOW_AND_THEN:
        return  # told without a guest
    if entry:
        stricter = isinstance(refused, BoundaryOpen)  # it is, and the self-test takes it for open
        reason = "its self-test makes the call" if stricter else guests.trial.reason
        message = f"the bot cannot do without {call}: {reason}"
        cure = "delete it" if entry == call else f"name its other calls, without {call}"
        yield subject.at_entry("syscall-needed", "denied_syscalls", entry, message, cure)
    elif isinstance(refused, BoundaryOpen):
        for probe in refused.failed:
            message = f"the probe {probe.name!r} got through: {probe.detail}"
            cure = "deny what it calls, or require the layer that refuses it"
            yield subject.at_heading("probe-failed", "denied_syscalls", message, cure, probe.name)
    else:
        message, _, cure = guests.trial.reason.partition("; cure: ")
        cure = cure or "see SECURITY.md"
        yield subject.at_entry("layer-absent", "required_layers", layer, message, cure)
