"""How a program ended: the guest's own word or the kernel's, and the outcome made of it."""

import os
import signal
from typing import Literal, NamedTuple

from sandbox.check.checker import Violation
from sandbox.fork_server import protocol
from sandbox.fork_server.error_text import MOST_LINES
from sandbox.fork_server.png import NotAPicture, Picture, picture
from sandbox.policy.loader import Policy

Reported = Literal["ok", "error", "syntax_error", "memory_limit", "output_limit"]
Kind = Reported | Literal["rejected", "cpu_limit", "wall_limit", "crashed", "busy", "unavailable"]


class Outcome(NamedTuple):
    """The answer to one program.

    `output` is what it printed, then the echoed value; decoded, at most the policy's
    `output_bytes`, and possibly partial unless `kind` is ok. `error` is the program's own error, in
    lines of which the first says it all, or the reason of another kind but a limit; `warning` is
    what Python said of a program that ran, and which of its `pictures` are left out. `violations`
    is set for rejected and syntax_error.
    """

    kind: Kind
    output: str = ""
    error: str = ""
    warning: str = ""
    violations: tuple[Violation, ...] = ()
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    max_rss_kib: int = 0
    pictures: tuple[Picture, ...] = ()


class Report(NamedTuple):
    """A guest's own word, which need not be true: shown to its user, it decides nothing else."""

    kind: Reported
    error: str
    cpu_seconds: float
    max_rss_kib: int
    picture_bytes: int = 0


class Ending(NamedTuple):
    """The kernel's word, through the zygote, on a guest that ended without a report."""

    status: int
    ended_for: int
    cpu_seconds: float
    max_rss_kib: int

    def was_killed_from_outside(self, policy: Policy) -> bool:
        """Return whether neither its program nor a limit ended it: an OOM victim, most likely."""
        return (
            self.ended_for == protocol.NOT_BY_ZYGOTE
            and os.WIFSIGNALED(self.status)
            and os.WTERMSIG(self.status) == signal.SIGKILL
            and self.cpu_seconds < policy.rlimits.cpu_seconds
        )


# By verdict, as protocol numbers them.
_REPORTED: list[Reported] = ["ok", "error", "syntax_error", "memory_limit", "output_limit"]


def read_report(data: bytes, policy: Policy) -> Report:
    """Return what any bytes from a guest say, numbers brought within the policy's bounds."""
    verdict, cpu_microseconds, max_rss_kib, error, picture_bytes = protocol.unpack_report(data)
    if verdict not in range(len(_REPORTED)):
        verdict, error = protocol.ERROR, "the program wrote where only its report belongs"
    return Report(
        kind=_REPORTED[verdict],
        error="\n".join(error.split("\n", MOST_LINES)[:MOST_LINES]),
        cpu_seconds=min(max(cpu_microseconds / 1e6, 0.0), float(policy.rlimits.cpu_seconds)),
        max_rss_kib=min(max(max_rss_kib, 0), policy.rlimits.address_space_mib * 1024),
        picture_bytes=picture_bytes if _REPORTED[verdict] == "ok" else 0,
    )


def outcome_of(word: Report | Ending, output: bytes, seconds: float, policy: Policy) -> Outcome:
    """Return the outcome of a program that wrote `output`, with its pictures at the end."""
    kind, error = (word.kind, word.error) if isinstance(word, Report) else _judge(word, policy)
    drawn = word.picture_bytes if isinstance(word, Report) else 0
    end_of_text = max(len(output) - drawn, 0)
    pictures, left_out = _pictures(output[end_of_text:])
    is_ok = kind == "ok"
    return Outcome(
        kind=kind,
        output=output[:end_of_text][: policy.limits.output_bytes].decode("utf-8", "replace"),
        error="" if is_ok else error,
        warning="\n".join(filter(None, (error, left_out))) if is_ok else "",
        cpu_seconds=word.cpu_seconds,
        wall_seconds=seconds,
        max_rss_kib=word.max_rss_kib,
        pictures=pictures,
    )


def _pictures(data: bytes) -> tuple[tuple[Picture, ...], str]:
    """Return the pictures in what a guest wrote, and a sentence on what is none."""
    found, left_out = [], ""
    for each in protocol.unpack_pictures(data):
        try:
            found.append(picture(each))
        except NotAPicture as error:
            left_out = f"A picture is left out: {error}."
    return tuple(found), left_out


def _judge(ending: Ending, policy: Policy) -> tuple[Kind, str]:
    """Return the kind of an end, and what there is to say of it but the limit."""
    if ending.ended_for == protocol.WALL_TIME_OVER:
        return "wall_limit", ""
    if ending.was_killed_from_outside(policy):
        return "memory_limit", "was ended by the system, which ran short of memory"
    if not os.WIFSIGNALED(ending.status):  # the program went past the interpreter's own end
        code = os.WEXITSTATUS(ending.status)
        if code == protocol.NO_MEMORY_TO_REPORT:
            return "memory_limit", ""
        return ("error", f"ended with exit code {code}") if code else ("ok", "")
    number = os.WTERMSIG(ending.status)
    if (
        ending.ended_for == protocol.CPU_TIME_OVER
        or number in (signal.SIGXCPU, signal.SIGKILL)
        or ending.cpu_seconds >= policy.rlimits.cpu_seconds
    ):
        return "cpu_limit", ""
    known = {one.value: one.name for one in signal.Signals}  # real-time signals have no name
    return "crashed", f"the interpreter was ended by {known.get(number, f'signal {number}')}"
