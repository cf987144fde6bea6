"""Rules of denied_syscalls that need no guest: what the boundary and the interpreter need.

syscall-missing (error): A system call that the boundary needs denied is not
    The filter is what holds when a program gets past the checker. Each need names what a program
    could do with the call: reach the network, start processes, signal others ...
    Example: denied_syscalls without '@network-io'
    Cure: Add the group or the call to denied_syscalls.

syscall-needed (error): A system call that the interpreter itself needs is denied
    No program could run, or the bot's self-test could not: shown by running a guest, so it is true
    of this machine and this version of Python. Or the bot would serve, and the programs fail that
    come to need the call.
    Example: - mmap
    Cure: Delete the entry.

syscall-one-machine (warning): A denied call that only one kind of processor has
    On the other kind the entry denies nothing, and the calls that do the same there are open.
    Example: - arch_prctl
    Cure: Delete the entry, or deny what does the same on the other kind as well.
"""

from sandbox.kernel.syscalls import GROUPS, TABLES, expand
from tools.policy_lint.known import NEEDS, NOW_AND_THEN
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """What the boundary needs and the list lacks; entries that only one machine knows."""
    for need, entries in NEEDS.items():
        for entry in entries.split():
            calls = expand([entry])
            if not (open_calls := sorted(call for call in calls if not _denies(policy, call))):
                continue
            message = f"programs could {need}: {_listing(open_calls, len(calls))} not denied"
            cure = f"add `- '{entry}'`" if entry.startswith("@") else f"add `- {entry}`"
            call = entry.removeprefix("@")  # which somebody wrote for the group, such as mount
            if call != entry and call in policy.denied_syscalls:
                cure, entry = f"did you mean '{entry}'?", call  # noqa: PLW2901
            yield subject.finding("syscall-missing", ("denied_syscalls", entry), message, cure)
    for entry in subject.entries("denied_syscalls"):
        at, name = ("denied_syscalls", entry), entry.partition("(")[0]
        if entry in NOW_AND_THEN:
            message = f"the interpreter needs {entry}: {NOW_AND_THEN[entry]}"
            yield subject.finding("syscall-needed", at, message, "delete it")
        lacking = [machine for machine, table in TABLES.items() if name not in table]
        if len(lacking) == 1 and not _has_sound_group(policy, entry):
            message = f"{name} is unknown on {lacking[0]}, so that this denies nothing there"
            cure = "delete it, or deny its like there too"
            yield subject.finding("syscall-one-machine", at, message, cure)


def _denies(policy: Policy, call: str) -> bool:
    """Whether a call, or a call under a condition, is denied; wholly denied covers conditions."""
    return not policy.denied_syscalls.isdisjoint({call, call.partition("(")[0]})


def _listing(calls: list[str], group: int) -> str:
    """The calls; of a whole group a few."""
    most = 4 if len(calls) == group else 20
    shown = ", ".join(calls[:most]) + (f" and {len(calls) - most} more" * (len(calls) > most))
    return f"{shown} {'is' if len(calls) == 1 else 'are'}"


def _has_sound_group(policy: Policy, entry: str) -> bool:
    """Whether a group that holds the call is wholly denied: its like on other machines is too."""
    groups = (expand([group]) for group in GROUPS)
    return any(entry in calls and all(_denies(policy, call) for call in calls) for calls in groups)
