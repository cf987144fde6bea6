"""What is said of each limit: one sentence each, for people."""

from typing import Literal

from function.errors import Reason
from sandbox import Kind, Policy

Limit = Kind | Reason | Literal["source"]


def limit_sentence(limit: Limit, policy: Policy) -> str:
    """Say which limit was met, and what to do where something can be done."""
    limits, rlimits = policy.limits, policy.rlimits
    match limit:
        case "cpu_limit":
            return f"Stopped: it computed longer than the limit of {rlimits.cpu_seconds} s."
        case "wall_limit":
            return f"Stopped: it took longer than the limit of {limits.wall_seconds} s."
        case "memory_limit":
            return (
                f"Stopped: it needs more memory than the {rlimits.address_space_mib} MiB"
                " that a program may use."
            )
        case "output_limit":
            return f"Stopped: it printed more than the limit of {size(limits.output_bytes)}."
        case "crashed":
            return "Stopped: the program crashed the Python that ran it."
        case "source":
            most = size(limits.source_bytes)
            return f"Not run: the program is too long; at most {most} may be sent."
        case "busy" | "updates":
            return "Too many programs at once just now. Please try again in a few seconds."
        case "leased":
            return "This is being answered already."
        case "user_rate":
            return "You sent many programs and others wait. Try again in a minute."
        case "user_concurrent":
            return (
                f"Your other programs are still running, and at most {limits.sender_concurrent}"
                " may at once. Try again in a moment."
            )
    return "Out of order just now. Please try again in a minute."


def size(count: int) -> str:
    """A number of bytes, in KiB where that is exact."""
    return f"{count // 1024} KiB" if count % 1024 == 0 else f"{count} bytes"
