"""System calls: numbers for each architecture, and named groups, as `syscalls.ini` has them."""

from collections.abc import Iterable
from configparser import ConfigParser
from pathlib import Path

_FILE = ConfigParser(delimiters="=", comment_prefixes="#", interpolation=None)
_FILE.read_string(Path(__file__).with_suffix(".ini").read_text("utf-8"))


def _numbers(*sections: str) -> dict[str, int]:
    return {
        name: number
        for section in sections
        for first, names in _FILE.items(section)
        for number, name in enumerate(names.split(), int(first))
    }


TABLES = {arch: _numbers(arch, "common") for arch in ("x86_64", "aarch64")}
GROUPS = {group: tuple(members.split()) for group, members in _FILE.items("groups")}


def expand(entries: Iterable[str]) -> frozenset[str]:
    """Replace every `@group` by its members, nested groups too.

    Entries are syscall names, `name(condition)` (kept as they are; see `seccomp.CONDITIONS`) and
    groups. Raises ValueError for a group not in GROUPS or a name that no table has.
    """
    expanded: set[str] = set()
    for entry in entries:
        if entry.startswith("@"):
            if entry not in GROUPS:
                raise ValueError(f"unknown group of system calls: {entry}")
            expanded |= expand(GROUPS[entry])
        elif any(entry.partition("(")[0] in table for table in TABLES.values()):
            expanded.add(entry)
        else:
            raise ValueError(f"unknown system call: {entry}")
    return frozenset(expanded)
