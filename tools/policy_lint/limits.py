"""Rules of rlimits and limits: too small for a program, too large for the machine or for sense."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sandbox.policy.document import At, dotted
from sandbox.policy.loader import Policy
from tools.policy_lint.finding import Finding, Rule
from tools.policy_lint.interpreter import ROOMY_RLIMITS, Interpreter
from tools.policy_lint.subject import Subject

TOO_SMALL = Rule(
    "limit-too-small",
    "error",
    "A limit too small for ordinary programs",
    "The interpreter would not start, or every program would end in this limit. Found by running "
    "a guest with it, or known from what Telegram sends: 4096 characters, 16384 bytes at most.",
    "address_space_mib: 32",
    "Write at least what the message says.",
)
LOOSE = Rule(
    "limit-loose",
    "error",
    "A limit so large that it limits nothing",
    "Each limit is the last one where another layer fails: programs need to write no file, leave "
    "no memory dump and start no process.",
    "file_size_bytes: 1048576",
    "Write at most what the message says.",
)
OVERCOMMIT = Rule(
    "memory-overcommit",
    "warning",
    "Concurrent guests may need more memory than there is",
    "When all of them use what they may, the system ends processes of its own choice, the bot "
    "among them. What counts is the machine's memory, or the container's if that is less.",
    "address_space_mib: 4096 with concurrent_guests: 8 on a machine of 8 GiB",
    "Lower address_space_mib or concurrent_guests.",
)
TOO_LONG = Rule(
    "wait-too-long",
    "error",
    "A program may take longer than Telegram waits",
    "Telegram takes no answer within 60 seconds for a failure and sends the message again, so the "
    "program would run again and again.",
    "wall_seconds: 90",
    "Let queue_seconds and wall_seconds be less than 60 together.",
)
RULES = {rule.id: rule for rule in (TOO_SMALL, LOOSE, OVERCOMMIT, TOO_LONG)}

_TELEGRAM_SECONDS = 60
# Least and most that make sense, with the reason; beyond the bounds of the schema.
_LEAST: dict[At, tuple[int, str]] = {
    ("limits", "source_bytes"): (4096, "a message of Telegram has up to 4096 characters"),
    ("limits", "output_bytes"): (4096, "an answer in Telegram has up to 4096 characters"),
    ("limits", "zygote_guests"): (100, "a new fork server takes a fifth of a second"),
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
    ("limits", "zygote_guests"): (1_000_000, "a fresh fork server has another memory layout"),
    ("limits", "zygote_minutes"): (1440, "a fresh fork server has another memory layout"),
}


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """What the numbers alone tell, and the machine's memory."""
    for bounds, rule, word in ((_LEAST, TOO_SMALL, "least"), (_MOST, LOOSE, "most")):
        for at, (bound, why) in bounds.items():
            value = subject.document.number(at)
            if value is not None and (value < bound if word == "least" else value > bound):
                message = f"{dotted(at)} is {value}, and {why}"
                yield subject.at_value(rule, at, message, f"write at {word} {bound}")
    limits = policy.limits
    if limits.wall_seconds + limits.queue_seconds >= _TELEGRAM_SECONDS:
        for name, other in (
            ("wall_seconds", limits.queue_seconds),
            ("queue_seconds", limits.wall_seconds),
        ):
            most = _TELEGRAM_SECONDS - 1 - other
            if most > 0:
                message = (
                    f"a program may wait and run for {limits.wall_seconds + limits.queue_seconds} s"
                )
                yield subject.at_value(TOO_LONG, ("limits", name), message, f"write at most {most}")
    yield from _overcommit(subject, policy)


def _overcommit(subject: Subject, policy: Policy) -> Iterator[Finding]:
    guests, each = policy.limits.concurrent_guests, policy.rlimits.address_space_mib
    memory = memory_mib()
    if guests * each <= memory:
        return
    message = f"{guests} concurrent guests of {each} MiB exceed the {memory} MiB of this machine"
    for at, most in (
        (("limits", "concurrent_guests"), memory // each),
        (("rlimits", "address_space_mib"), memory // guests),
    ):
        if most > 0:
            yield subject.at_value(OVERCOMMIT, at, message, f"write at most {most}")


def memory_mib(root: Path = Path("/sys/fs/cgroup")) -> int:
    """MiB of this machine, or of the container where that has less (cgroup v2, then v1)."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            machine = min(machine, int((root / name).read_text()))
    return machine >> 20


def find_failing(subject: Subject, policy: Policy, interpreter: Interpreter) -> Iterator[Finding]:
    """Kernel limits under which a guest cannot do what any program may, one after the other."""
    roomy = asdict(ROOMY_RLIMITS)
    for name, value in asdict(policy.rlimits).items():
        if value >= roomy[name]:
            continue
        reason = interpreter.exercise(rlimits=replace(ROOMY_RLIMITS, **{name: value})).reason
        if not reason:
            continue
        enough = _enough(interpreter, name, value, roomy[name])
        message = f"with {name} {value} an ordinary program fails: {reason}"
        yield subject.at_value(TOO_SMALL, ("rlimits", name), message, f"write at least {enough}")


def _enough(interpreter: Interpreter, name: str, value: int, most: int) -> int:
    """A value that suffices, found by doubling."""
    while (value := max(2 * value, 1)) < most:
        changes: dict[str, Any] = {name: value}
        if interpreter.exercise(rlimits=replace(ROOMY_RLIMITS, **changes)).passed:
            return value
    return most
