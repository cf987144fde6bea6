"""Rules of identity and required_layers: whose rights a program has.

uid-taken (error): A guest would run as a real account of this system
    Its processes could be signalled and its files read by programs from chats; and what the account
    runs counts against the guests' limits.
    Example: first_uid: 1000 where 1000 is a person
    Cure: Choose a range above the accounts of the machine and below those of containers.

uid-reserved (warning): A guest would run as a user that something else hands out
    systemd gives services users of their own, and containers have ranges (systemd's users and
    groups, subuid(5)): one of these may run beside the bot with the same number.
    Example: first_uid: 100000
    Cure: Choose a range that the message does not name.

layers-insecure (error): The required layers cannot keep the secret together
    Of a change of uid and Landlock at least one must hold, or programs could read the bot's token
    once they are past the checker.
    Example: required_layers without uid and landlock
    Cure: Add `- uid or landlock` to required_layers.
"""

import contextlib
import grp
import pwd
from itertools import count
from pathlib import Path

from sandbox.policy.document import At
from tools.policy_lint.known import KNOWN
from tools.policy_lint.subject import Findings, Policy, Subject


def check(subject: Subject, policy: Policy) -> Findings:
    """Accounts and reserved ranges in the range, layers that do not suffice."""
    if not policy.required_layers & {"uid", "landlock", "uid or landlock"}:
        message = "neither uid nor landlock is required, which keep programs from the secret"
        cure = "add `- uid or landlock`"
        yield subject.finding("layers-insecure", ("required_layers",), message, cure)
    first, size = policy.identity.first_uid, policy.identity.uid_count
    uids, first_at = range(first, first + size), ("identity", "first_uid")
    accounts = {group.gr_gid: f"group {group.gr_name}" for group in grp.getgrall()}
    accounts |= {user.pw_uid: f"user {user.pw_name}" for user in pwd.getpwall()}
    handed_out = KNOWN["reserved_uids"].items()
    reserved = {range(low, high + 1): whose for whose, (low, high) in handed_out} | _subordinate()
    taken = [*reserved, *(range(number, number + 1) for number in accounts)]
    starts = count(5000, 1000)
    free = next(start for start in starts if not _meets(range(start, start + size), taken))
    if number := min((number for number in accounts if number in uids), default=0):
        message = f"{first} to {uids[-1]} holds {number}, the {accounts[number]} of this system"
        if number - first >= policy.limits.concurrent_guests + policy.limits.prepared_guests:
            most: dict[At, float] = {("identity", "uid_count"): number - first}
            yield from subject.at_most("uid-taken", message, most)
        yield subject.finding("uid-taken", first_at, message, f"write {free}")
    for span, whose in reserved.items():
        if _meets(uids, [span]):
            message = f"{span.start} to {span.stop - 1} are for {whose}"
            yield subject.finding("uid-reserved", first_at, message, f"write {free}")


def _meets(uids: range, spans: list[range]) -> bool:
    return any(uids.start < span.stop and span.start < uids.stop for span in spans)


def _subordinate() -> dict[range, str]:
    """The ranges that users of this system may give to containers: subuid(5)."""
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/etc/subuid").read_text("utf-8").splitlines():
            name, start, size = line.split(":")
            found[range(int(start), int(start) + int(size))] = f"containers of {name}"
    return found
