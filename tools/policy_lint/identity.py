"""Rules of identity, required_layers, readable_paths: whose rights a program has, what it reads."""

import grp
import pwd
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sandbox.policy.loader import Policy
from tools.policy_lint.finding import Finding, Rule
from tools.policy_lint.subject import Subject

TAKEN = Rule(
    "uid-taken",
    "error",
    "A guest would run as a real account of this system",
    "Its processes could be signalled and its files read by programs from chats; and what the "
    "account runs counts against the guests' limits.",
    "first_uid: 1000 where 1000 is a person",
    "Choose a range above the accounts of the machine and below those of containers.",
)
SECRET = Rule(
    "layers-insecure",
    "error",
    "The required layers cannot keep the secret together",
    "Of a change of uid and Landlock at least one must hold, or programs could read the bot's "
    "token once they are past the checker.",
    "required_layers without uid and landlock",
    "Add `- uid or landlock` to required_layers.",
)
PATH_EXPOSES = Rule(
    "path-exposes",
    "error",
    "A readable path that shows more than libraries",
    "Landlock would let programs read settings, secrets, devices or other processes.",
    "- /etc",
    "Delete the entry, or name the one folder that is needed.",
)
PATH_MISSING = Rule(
    "path-missing",
    "warning",
    "A readable path that does not exist",
    "The one that was meant stays unreadable.",
    "- /usr/share/zonefino",
    "Correct it, or delete it.",
)
RULES = {rule.id: rule for rule in (TAKEN, SECRET, PATH_EXPOSES, PATH_MISSING)}

# Where libraries and their data are; everything else holds what is none of a program's business.
_PUBLIC = tuple(map(PurePosixPath, ("/usr", "/lib", "/lib32", "/lib64", "/opt")))
# Absent in small images, where time zones are then missing and nothing else.
_OPTIONAL = frozenset({"/usr/share/zoneinfo"})


def find(subject: Subject, policy: Policy) -> Iterator[Finding]:
    """Accounts in the range, layers that do not suffice, paths that are too much or missing."""
    yield from _taken(subject, policy)
    if not policy.required_layers & {"uid", "landlock", "uid or landlock"}:
        message = (
            "neither uid nor landlock is required, so nothing need keep programs from the secret"
        )
        yield subject.at_heading(SECRET, "required_layers", message, "add `- uid or landlock`")
    for path, _ in subject.entries("readable_paths"):
        pure = PurePosixPath(path)
        if path.startswith("@"):
            continue
        if ".." in pure.parts or not any(pure.is_relative_to(public) for public in _PUBLIC):
            message = f"{path} is no folder of libraries"
            yield subject.at_entry(PATH_EXPOSES, "readable_paths", path, message, "delete it")
        elif pure in _PUBLIC:
            message = f"{path} is more than one library"
            cure = "delete it, or name the folder beneath it that is needed"
            yield subject.at_entry(PATH_EXPOSES, "readable_paths", path, message, cure)
        elif path not in _OPTIONAL and not Path(path).exists():
            message = f"{path} does not exist"
            yield subject.at_entry(
                PATH_MISSING, "readable_paths", path, message, "correct it, or delete it"
            )


def _taken(subject: Subject, policy: Policy) -> Iterator[Finding]:
    first = policy.identity.first_uid
    uids = range(first, first + policy.identity.uid_count)
    users = {user.pw_uid: f"user {user.pw_name}" for user in pwd.getpwall()}
    groups = {group.gr_gid: f"group {group.gr_name}" for group in grp.getgrall()}
    taken = {number: name for number, name in (groups | users).items() if number in uids}
    if not taken:
        return
    number = min(taken)
    message = f"{first} to {uids[-1]} holds {number}, the {taken[number]} of this system"
    count = policy.identity.uid_count
    free = _free(set(users) | set(groups), count)
    if number > first and number - first >= _wanted(policy):
        cure = f"write at most {number - first}"
        yield subject.at_value(TAKEN, ("identity", "uid_count"), message, cure)
    yield subject.at_value(TAKEN, ("identity", "first_uid"), message, f"write {free}")


def _wanted(policy: Policy) -> int:
    return policy.limits.concurrent_guests + policy.limits.prepared_guests


def _free(taken: set[int], count: int) -> int:
    """The first thousand above 5000 that begins a range without accounts."""
    first = 5000
    while any(first <= number < first + count for number in taken):
        first += 1000
    return first
