"""Rules of rlimits and limits that need no guest: too small or too large for sense.

limit-too-small (error): A limit too small for ordinary programs
    The interpreter would not start, or every program would end in this limit. Found by running a
    guest with it, or known from what Telegram sends: 4096 characters, 16384 bytes at most.
    Example: address_space_mib: 32
    Cure: Write at least what the message says.

limit-loose (error): A limit so large that it limits nothing
    Each limit is the last one where another layer fails: programs need to write no file, leave no
    memory dump and start no process.
    Example: file_size_bytes: 1048576
    Cure: Write at most what the message says.

memory-overcommit (warning): Concurrent guests may need more memory than there is
    When all of them use what they may, the system ends processes of its own choice, the bot among
    them. What counts is the machine's memory, or the container's if that is less.
    Example: address_space_mib: 4096 with concurrent_guests: 8 on a machine of 8 GiB
    Cure: Lower address_space_mib or concurrent_guests.

wait-too-long (error): A program may take longer than Telegram waits
    Telegram takes no answer within 60 seconds for a failure and sends the message again, so the
    program would run again and again.
    Example: wall_seconds: 90
    Cure: Let queue_seconds and wall_seconds be less than 60 together.
"""

import contextlib
import os
from pathlib import Path

from sandbox.policy.document import At
from tools.policy_lint.known import KNOWN
from tools.policy_lint.subject import Findings, Policy, Subject

_TELEGRAM_SECONDS = 60


def check(subject: Subject, policy: Policy) -> Findings:
    """What the numbers alone tell, and the machine's memory."""
    for rule, word, sign in (("limit-too-small", "least", -1), ("limit-loose", "most", 1)):
        for name, (bound, why) in KNOWN[word].items():
            at = tuple(name.split("."))
            value = subject.document.number(at)
            if value is not None and sign * (value - bound) > 0:
                cure = f"write at {word} {bound}"
                yield subject.finding(rule, at, f"{name} is {value}, and {why}", cure)
    wall, queue = policy.limits.wall_seconds, policy.limits.queue_seconds
    if wall + queue >= _TELEGRAM_SECONDS:
        most: dict[At, float] = {("limits", "wall_seconds"): _TELEGRAM_SECONDS - 1 - queue}
        most["limits", "queue_seconds"] = _TELEGRAM_SECONDS - 1 - wall
        message = f"a program may wait and run for {wall + queue} s"
        yield from subject.at_most("wait-too-long", message, most)
    guests, each = policy.limits.concurrent_guests, policy.rlimits.address_space_mib
    memory = memory_mib()
    if guests * each > memory:
        most = {("limits", "concurrent_guests"): memory / each}
        most["rlimits", "address_space_mib"] = memory / guests
        message = f"{guests} concurrent guests of {each} MiB exceed this machine's {memory} MiB"
        yield from subject.at_most("memory-overcommit", message, most)


def memory_mib(root: Path = Path("/sys/fs/cgroup")) -> int:
    """MiB of this machine, or of the container where that has less (cgroup v2, then v1)."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            machine = min(machine, int((root / name).read_text()))
    return machine >> 20
