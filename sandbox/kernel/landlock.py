"""Landlock: deny files, TCP, abstract sockets and outside signals, by what the kernel offers.

Facts come from landlock(7) and the kernel's Documentation/userspace-api/landlock.rst.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct

from sandbox.kernel.libc import libc, syscall

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same number everywhere
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_LOG_SAME_EXEC_OFF = 1  # ABI 7: a hostile guest must not fill the audit log

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3

# The number of file rights, network rights and scopes that each ABI version knows.
_KNOWN_BY_ABI = {
    1: (13, 0, 0),
    2: (14, 0, 0),  # REFER
    3: (15, 0, 0),  # TRUNCATE
    4: (15, 2, 0),  # BIND_TCP, CONNECT_TCP
    5: (16, 2, 0),  # IOCTL_DEV
    6: (16, 2, 2),  # ABSTRACT_UNIX_SOCKET, SIGNAL
    9: (17, 2, 2),  # RESOLVE_UNIX
}


def abi() -> int:
    """Return the kernel's Landlock ABI version, 0 where it has none or it is off at boot."""
    try:
        size, flags = ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION)
        return syscall(_CREATE_RULESET, None, size, flags)
    except OSError:
        return 0


def create_ruleset(readable_paths: Iterable[str], abi_version: int) -> int:
    """Return the descriptor of a ruleset that denies all that ABI can deny but reading.

    Takes the directories or files that stay readable (missing ones are left out) and the
    version from `abi()`, at least 1. Raises OSError with the kernel's reason.
    """
    known = max(version for version in _KNOWN_BY_ABI if version <= abi_version)
    rights = struct.pack("=QQQ", *((1 << count) - 1 for count in _KNOWN_BY_ABI[known]))
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = syscall(_CREATE_RULESET, rights, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in readable_paths:
            _allow_reading(ruleset, path)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        is_directory = stat.S_ISDIR(os.fstat(parent).st_mode)
        access = _READ_FILE | _READ_DIR if is_directory else _READ_FILE
        rule = struct.pack("=Qi", access, parent)
        kind, no_flags = ctypes.c_int(_RULE_PATH_BENEATH), ctypes.c_uint32(0)
        syscall(_ADD_RULE, ctypes.c_int(ruleset), kind, rule, no_flags)
    finally:
        os.close(parent)


def restriction(ruleset: int, abi_version: int) -> tuple[Callable[..., int], tuple[object, ...]]:
    """Return the call, with its arguments, that installs the ruleset on the calling thread.

    It needs no_new_privs, and returns -1 with errno set if it fails.
    """
    flags = _LOG_SAME_EXEC_OFF if abi_version >= 7 else 0
    arguments = ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint32(flags)
    return libc.syscall, arguments
