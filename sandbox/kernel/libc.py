"""Calls to libc whose failures are exceptions. Loaded by the process that forks guests."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)


def call(function: Callable[..., int], *arguments: object) -> int:
    """Return what a function of libc returns. Raises OSError where that is -1."""
    result = function(*arguments)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def syscall(number: int, *arguments: object) -> int:
    """Make a system call that libc may not know. Raises OSError."""
    return call(libc.syscall, ctypes.c_long(number), *arguments)
