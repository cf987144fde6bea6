"""How a program ended: the guest's word or the kernel's, put into one frozen value."""

import os
import signal
from dataclasses import dataclass
from typing import Literal

from sandbox.check.checker import Violation
from sandbox.fork_server import guest
from sandbox.fork_server.zygote import ENDING
from sandbox.policy.loader import Policy

Kind = Literal[
    "ok",
    "error",
    "rejected",
    "syntax_error",
    "cpu_limit",
    "wall_limit",
    "memory_limit",
    "output_limit",
    "crashed",
    "busy",
    "unavailable",
]


@dataclass(frozen=True)
class Outcome:
    """The answer to one program.

    `output` is what it printed, then the echoed value; decoded, at most the policy's
    `output_bytes`, and possibly partial unless `kind` is ok. `error` is one line: the program's
    own error, or the reason of another kind. `violations` is set for rejected and syntax_error.
    """

    kind: Kind
    output: str = ""
    error: str = ""
    violations: tuple[Violation, ...] = ()
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    max_rss_kib: int = 0


KILLED_FROM_OUTSIDE = "was ended by the system, which ran short of memory"

_VERDICTS: dict[int, Kind] = {
    guest.OK: "ok",
    guest.ERROR: "error",
    guest.SYNTAX_ERROR: "syntax_error",
    guest.MEMORY_LIMIT: "memory_limit",
    guest.OUTPUT_LIMIT: "output_limit",
    guest.NOT_CONFINED: "unavailable",
}


def from_report(report: bytes, output: bytes, wall_seconds: float, policy: Policy) -> Outcome:
    """Return the outcome by the guest's own word, which need not be true or even well formed."""
    verdict, cpu_microseconds, max_rss_kib = guest.ERROR, 0, 0
    if len(report) >= guest.REPORT.size:
        verdict, cpu_microseconds, max_rss_kib = guest.REPORT.unpack_from(report)
    kind = _VERDICTS.get(verdict, "error")
    match kind:
        case "memory_limit":
            error = f"needed more than {policy.rlimits.address_space_mib} MiB of memory"
        case "output_limit":
            error = f"printed more than {policy.limits.output_bytes} bytes"
        case _:
            text = report[guest.REPORT.size :].decode("utf-8", "replace")
            error = " ".join(text.split("\n"))
    return Outcome(
        kind=kind,
        output=output.decode("utf-8", "replace"),
        error=error,
        cpu_seconds=min(max(cpu_microseconds / 1e6, 0.0), policy.rlimits.cpu_seconds + 1.0),
        wall_seconds=wall_seconds,
        max_rss_kib=min(max(max_rss_kib, 0), policy.rlimits.address_space_mib * 1024),
    )


def from_ending(ending: bytes, output: bytes, wall_seconds: float, policy: Policy) -> Outcome:
    """Return the outcome of a guest that ended without a word, as the zygote reported it."""
    status, timed_out, user_seconds, system_seconds, max_rss_kib = ENDING.unpack(ending)
    cpu_seconds = user_seconds + system_seconds
    kind, reason = _kind_of_death(status, timed_out, cpu_seconds, policy)
    return Outcome(
        kind=kind,
        output=output.decode("utf-8", "replace"),
        error=reason,
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_seconds,
        max_rss_kib=max_rss_kib,
    )


def _kind_of_death(
    status: int, timed_out: bool, cpu_seconds: float, policy: Policy
) -> tuple[Kind, str]:
    if timed_out:
        return "wall_limit", f"ran longer than {policy.limits.wall_seconds} s"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:  # the program went past the interpreter's own end
        return ("error", f"ended with exit code {code}") if code else ("ok", "")
    if -code == signal.SIGXCPU or cpu_seconds >= policy.rlimits.cpu_seconds:
        return "cpu_limit", f"computed longer than {policy.rlimits.cpu_seconds} s"
    if -code == signal.SIGKILL:
        return "memory_limit", KILLED_FROM_OUTSIDE
    return "crashed", f"the interpreter was ended by {signal.Signals(-code).name}"
