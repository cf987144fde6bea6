"""The programs of prelude and warm_up, each tried in a guest with the limits of any other.

Where the policy has libraries, whose import does more than a guest may, they are not tried.

warm-up-refused (error): A prelude or warm-up program breaks the rules of this file
    It runs in the zygote, and so it must do nothing that others may not; the bot refuses to serve.
    Example: warm_up with import os
    Cure: Correct the program.

warm-up-fails (error): A prelude or warm-up program does not come to its end
    It raises, loops or takes more memory than a program may, so the bot does not start.
    Example: warm_up: [1/0]
    Cure: Correct the program, or delete it.
"""

from collections.abc import Iterator
from itertools import chain

from sandbox.check.checker import check as violations
from sandbox.fork_server.zygote_process import SandboxUnavailable
from sandbox.policy.document import PROGRAMS, Finding
from sandbox.policy.libraries import libraries
from tools.policy_lint.subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Programs that the policy refuses, and programs that fail."""
    assert subject.policy
    programs = (subject.document.strings(field) for field in PROGRAMS)
    for at, source in chain.from_iterable(programs):
        place = subject.document.place(at)
        if broken := violations(source, subject.policy):
            message = f"line {broken[0].line} of this program: {broken[0].message}"
            yield subject.finding("warm-up-refused", place, message, "delete it", source, at)
            continue
        if libraries(subject.policy):
            message = "this program is tried only where libraries are imported"
            cure = "try it: tools/calc --policy FILE 2+2"
            yield subject.finding("not-tried", place, message, cure, source, at)
            continue
        try:
            outcome = subject.guests.rehearse(source)
        except SandboxUnavailable as error:
            message = f"this program could not be tried: {error}"
            cure = "run the lint where the bot can run"
            yield subject.finding("not-tried", place, message, cure, source, at)
            continue
        if outcome.kind != "ok":
            reason = f"{outcome.kind.replace('_', ' ')}: {outcome.error}".rstrip(": ")
            message = f"this program fails: {reason}"
            yield subject.finding(
                "warm-up-fails", place, message, "correct or delete it", source, at
            )
