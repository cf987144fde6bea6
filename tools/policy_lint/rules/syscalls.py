"""Rules of denied_syscalls that need no guest: what the boundary and the interpreter need.

syscall-missing (error): A system call that the boundary needs denied is not
    The filter is what holds when a program gets past the checker. Each need names what a program
    could do with the call: reach the network, start processes, signal others ...
    Example: denied_syscalls without '@network-io'
    Cure: Add the group or the call to denied_syscalls.

syscall-needed (error): A system call that the interpreter itself needs is denied
    No program could run, or the bot's self-test could not. Shown by running a guest, so it is true
    of this machine and this version of Python.
    Example: - mmap
    Cure: Delete the entry.

syscall-one-machine (warning): A denied call that only one kind of processor has
    On the other kind the entry denies nothing, and the calls that do the same there are open.
    Example: - arch_prctl
    Cure: Delete the entry, or deny what does the same on the other kind as well.
"""

from collections.abc import Iterator

from sandbox.kernel.syscalls import GROUPS, TABLES, expand
from sandbox.policy.document import Finding
from sandbox.policy.loader import Policy
from tools.policy_lint.subject import Subject

# Needed now and then, so that a guest may do without them for a while.
NOW_AND_THEN = {
    "clock_gettime": "time is read with it",
    "exit": "programs end with it",
    "exit_group": "programs end with it",
    "futex": "locks wait with it",
    "getrandom": "random numbers begin with it",
    "madvise": "memory is given back with it",
    "mprotect": "memory is prepared with it",
    "mremap": "large lists grow with it",
    "munmap": "memory is given back with it",
    "rt_sigaction": "signals are prepared with it",
    "rt_sigprocmask": "signals are held back with it",
    "rt_sigreturn": "signals return with it",
}

# What a program must not be able to do, and the groups and calls that it would do it with.
NEEDS = {
    "reach the network": "@network-io",
    "start processes and threads, and execute programs": "@spawn",
    "signal other processes": "@signal-others",
    "trace, watch and hold other processes": "@debug @other-processes",
    "change limits and priorities": "@limits",
    "write, link, delete and change files": "@file-write @sync",
    "hold memory that no limit counts": "@memory",
    "open, look up and read files": "@file-read mmap(address)",
    "use up the timers and descriptors of a user": "@descriptors @timer",
    "wait for events and signals": "@io-event @signal-wait",
    "open files past every path check": "@file-handles",
    "submit work past the filter (io_uring)": "@aio",
    "share memory and messages with other processes": "@ipc",
    "use the kernel's keyrings": "@keyring",
    "lock memory, or make keys for it": "@memlock @pkey",
    "become another user": "@credentials",
    "make namespaces and mount file systems": "@mount @namespaces",
    "loosen its own confinement": "@sandbox prctl(unsafe)",
    "set the clock": "@clock",
    "load kernel code, or end the kernel": "@module @reboot @swap",
    "reach parts of the kernel that no calculation needs": "@cpu-emulation @kernel @obsolete",
    "reach ports and devices": "@raw-io ioctl(unsafe) fcntl(unsafe)",
    "watch what the machine and its users do": "@observe @page-cache",
}


def check(subject: Subject) -> Iterator[Finding]:
    """What the boundary needs and the list lacks; entries that only one machine knows."""
    policy = subject.policy
    assert policy
    for need, entries in NEEDS.items():
        for entry in entries.split():
            calls = expand([entry])
            open_calls = sorted(call for call in calls if not _denies(policy, call))
            if not open_calls:
                continue
            message = f"programs could {need}: {_listing(open_calls, len(calls))} not denied"
            cure = f"add `- {_quoted(entry)}`"
            bare = entry.removeprefix(
                "@"
            )  # a call that somebody wrote for the group, such as mount
            if bare != entry and bare in policy.denied_syscalls:
                cure = f"did you mean '{entry}'?"
            here = bare if bare in policy.denied_syscalls else entry
            yield subject.at_entry("syscall-missing", "denied_syscalls", here, message, cure)
    for entry, _ in subject.entries("denied_syscalls"):
        if entry in NOW_AND_THEN:
            message = f"the interpreter needs {entry}: {NOW_AND_THEN[entry]}"
            yield subject.at_entry("syscall-needed", "denied_syscalls", entry, message, "delete it")
    yield from _one_machine(subject, policy)


def _denies(policy: Policy, call: str) -> bool:
    """Whether a call, or a call under a condition, is denied; wholly denied covers conditions."""
    return not policy.denied_syscalls.isdisjoint({call, call.partition("(")[0]})


def _listing(calls: list[str], group: int) -> str:
    """The calls; of a whole group a few."""
    most = 4 if len(calls) == group else 20
    shown = ", ".join(calls[:most]) + (f" and {len(calls) - most} more" * (len(calls) > most))
    return f"{shown} {'is' if len(calls) == 1 else 'are'}"


def _quoted(entry: str) -> str:
    return f"'{entry}'" if entry.startswith("@") else entry


def _one_machine(subject: Subject, policy: Policy) -> Iterator[Finding]:
    for entry, _ in subject.entries("denied_syscalls"):
        name = entry.partition("(")[0]
        having = [machine for machine, table in TABLES.items() if name in table]
        if entry.startswith("@") or len(having) != 1 or _has_sound_group(policy, entry):
            continue
        other = next(machine for machine in TABLES if machine not in having)
        message = f"{name} is unknown on {other}, so that this denies nothing there"
        yield subject.at_entry(
            "syscall-one-machine",
            "denied_syscalls",
            entry,
            message,
            "delete it, or deny its like there too",
        )


def _has_sound_group(policy: Policy, entry: str) -> bool:
    """Whether a group that holds the call is wholly denied: its like on other machines is too."""
    return any(
        entry in expand([group]) and all(_denies(policy, call) for call in expand([group]))
        for group in GROUPS
    )
