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
from collections.abc import Iterator
from pathlib import Path

from sandbox.policy.document import Finding
from tools.policy_lint.subject import Subject

# What hands out user ids: https://systemd.io/UIDS-GIDS/
_RESERVED = {
    range(100000, 165536): "the first container of a user, subuid(5)",
    range(61184, 65520): "the dynamic users of systemd",
    range(524288, 1879048192): "containers of systemd",
}


def check(subject: Subject) -> Iterator[Finding]:
    """Accounts and reserved ranges in the range, layers that do not suffice."""
    policy = subject.policy
    assert policy
    if not policy.required_layers & {"uid", "landlock", "uid or landlock"}:
        message = "neither uid nor landlock is required, which keep programs from the secret"
        cure = "add `- uid or landlock`"
        yield subject.at_heading("layers-insecure", "required_layers", message, cure)
    first, count = policy.identity.first_uid, policy.identity.uid_count
    uids = range(first, first + count)
    users = {user.pw_uid: f"user {user.pw_name}" for user in pwd.getpwall()}
    accounts = {group.gr_gid: f"group {group.gr_name}" for group in grp.getgrall()} | users
    reserved = [*(_RESERVED | _subordinate()).items()]
    if taken := [number for number in accounts if number in uids]:
        number = min(taken)
        message = f"{first} to {uids[-1]} holds {number}, the {accounts[number]} of this system"
        if number - first >= policy.limits.concurrent_guests + policy.limits.prepared_guests:
            cure = f"write at most {number - first}"
            yield subject.at_number("uid-taken", ("identity", "uid_count"), message, cure)
        cure = f"write {_free(accounts, [span for span, _ in reserved], count)}"
        yield subject.at_number("uid-taken", ("identity", "first_uid"), message, cure)
    for span, whose in reserved:
        if first < span.stop and span.start < uids.stop:
            message = f"{span.start} to {span.stop - 1} are for {whose}"
            cure = f"write {_free(accounts, [span for span, _ in reserved], count)}"
            yield subject.at_number("uid-reserved", ("identity", "first_uid"), message, cure)


def _subordinate() -> dict[range, str]:
    """The ranges that users of this system may give to containers: subuid(5)."""
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/etc/subuid").read_text("utf-8").splitlines():
            name, start, count = line.split(":")
            found[range(int(start), int(start) + int(count))] = f"containers of {name}"
    return found


def _free(accounts: dict[int, str], reserved: list[range], count: int) -> int:
    """The first thousand from 5000 on that begins a range which nobody has."""
    first = 5000
    while any(first <= number < first + count for number in accounts) or any(
        first < span.stop and span.start < first + count for span in reserved
    ):
        first += 1000
    return first
