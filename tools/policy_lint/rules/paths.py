"""Rules of readable_paths: what Landlock lets programs read, links followed.

path-exposes (error): A readable path that shows more than one library
    Landlock would let programs read settings, secrets, devices or other processes. It follows
    links, so that what counts is where the path leads, here and in the image.
    Example: - /etc
    Cure: Delete the entry, or name the one folder that is needed.

path-missing (warning): A readable path that does not exist
    The one that was meant stays unreadable.
    Example: - /usr/share/zonefino
    Cure: Correct it, or delete it.
"""

import os
from pathlib import Path, PurePosixPath

from tools.policy_lint.subject import Findings, Policy, Subject

# Where libraries and their data are; everything else holds what is none of a program's business.
_SEVERAL = {"/usr/share", "/usr/local/lib", "/usr/local/share", "/usr/libexec", "/opt"}
# Whole, these are libraries and nothing else.
_WHOLE = {"/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64"}
# Absent in small images, where time zones are then missing and nothing else.
_OPTIONAL = "/usr/share/zoneinfo"


def check(subject: Subject, _: Policy) -> Findings:
    """Paths that show too much, or nothing."""
    for path in subject.entries("readable_paths"):
        if path.startswith("@"):
            continue
        at, resolved = ("readable_paths", path), os.path.realpath(path)
        if what := _exposed(path) or _exposed(resolved):
            leads = "" if resolved == path else f", which leads to {resolved},"
            cure = "delete it, or name the folder of the one library that is needed"
            yield subject.finding("path-exposes", at, f"{path}{leads} shows {what}", cure)
        elif path != _OPTIONAL and not os.path.exists(path):
            message = f"{path} does not exist"
            yield subject.finding("path-missing", at, message, "correct it, or delete it")


def _exposed(path: str) -> str:
    """What a path shows beyond one library; empty for nothing."""
    pure = PurePosixPath(path)
    if ".." in pure.parts or not any(pure.is_relative_to(public) for public in _SEVERAL | _WHOLE):
        return "more than libraries"
    if path in _SEVERAL:
        return "more than one library"
    if path.startswith("/opt/") and Path(path).is_dir():
        inside = sorted(entry.name for entry in Path(path).iterdir())[:4]
        return "" if inside <= ["lib"] else f"{', '.join(inside)} of a program of its own"
    return ""
