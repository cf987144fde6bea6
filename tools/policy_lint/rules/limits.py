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
from collections.abc import Iterator
from pathlib import Path

from sandbox.policy.document import At, Finding, dotted
from sandbox.policy.loader import Policy
from tools.policy_lint.subject import Subject

_TELEGRAM_SECONDS = 60
# Least and most that make sense, with the reason; beyond the bounds of the schema.
_LEAST: dict[At, tuple[int, str]] = {
    ("limits", "source_bytes"): (4096, "a message of Telegram has up to 4096 characters"),
    ("limits", "output_bytes"): (4096, "an answer in Telegram has up to 4096 characters"),
    ("limits", "zygote_guests"): (100, "a new zygote takes a fifth of a second"),
}
_MOST: dict[At, tuple[int, str]] = {
    ("rlimits", "file_size_bytes"): (0, "no program needs to write a file"),
    ("rlimits", "core_bytes"): (0, "no program needs to leave a memory dump"),
    ("rlimits", "processes"): (0, "no program needs to start a process or thread"),
    ("rlimits", "open_files"): (256, "no program needs to open files"),
    ("rlimits", "stack_mib"): (64, "Python bounds recursion long before"),
    ("limits", "source_bytes"): (131_072, "a message of Telegram has up to 16384 bytes"),
    ("limits", "input_bytes"): (131_072, "a message of Telegram has up to 16384 bytes"),
    ("limits", "sender_per_minute"): (600, "nobody types ten programs a second"),
    ("limits", "zygote_guests"): (1_000_000, "a fresh zygote has another memory layout"),
    ("limits", "zygote_minutes"): (1440, "a fresh zygote has another memory layout"),
}


def check(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """What the numbers alone tell, and the machine's memory."""
    number = subject.document.number
    for rule, bounds, sign in (("limit-too-small", _LEAST, -1), ("limit-loose", _MOST, 1)):
        for at, (bound, why) in bounds.items():
            value = number(at)
            if value is not None and sign * (value - bound) > 0:
                cure = f"write at {'most' if sign > 0 else 'least'} {bound}"
                yield subject.finding(rule, at, f"{dotted(at)} is {value}, and {why}", cure)
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
