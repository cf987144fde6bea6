"""libseccomp as a second opinion, through its C interface (seccomp.h, seccomp_rule_add(3))."""

import ctypes
import ctypes.util
import functools
import os
import tempfile

import pytest

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
MASKED_EQUAL = 7  # SCMP_CMP_MASKED_EQ
UNKNOWN = -1  # __NR_SCMP_ERROR


class ArgumentComparison(ctypes.Structure):
    """`struct scmp_arg_cmp`."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


@functools.cache
def load() -> ctypes.CDLL:
    """Return the library; a test that needs it is skipped on a machine without."""
    name = ctypes.util.find_library("seccomp")
    if name is None:
        pytest.skip("libseccomp is not installed (apt-get install libseccomp2)")
    library = ctypes.CDLL(name)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_syscall_resolve_num_arch.restype = ctypes.c_void_p
    return library


def number_of(name: str, token: int) -> int:
    """Return the number, below 0 where the architecture has no such call."""
    return load().seccomp_syscall_resolve_name_arch(ctypes.c_uint32(token), name.encode())


def name_of(number: int, token: int) -> str | None:
    library = load()
    found = library.seccomp_syscall_resolve_num_arch(ctypes.c_uint32(token), number)
    if not found:
        return None
    name = ctypes.string_at(found).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return name


def export(
    rules: list[tuple[str, int, tuple[tuple[int, int, int], ...]]], default: int, token: int
) -> bytes:
    """Return a filter: `default`, but for rules of (name, verdict, ((argument, mask, value), ...)).

    All comparisons of a rule must hold: argument & mask == value.
    """
    library = load()
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))
    native = library.seccomp_arch_native() % 2**32
    if native != token:
        assert library.seccomp_arch_add(context, ctypes.c_uint32(token)) == 0
        assert library.seccomp_arch_remove(context, ctypes.c_uint32(native)) == 0
    for name, verdict, comparisons in rules:
        number = library.seccomp_syscall_resolve_name(name.encode())
        assert number != UNKNOWN, name
        array = (ArgumentComparison * len(comparisons))(
            *((argument, MASKED_EQUAL, mask, value) for argument, mask, value in comparisons)
        )
        failed = library.seccomp_rule_add_array(
            context, ctypes.c_uint32(verdict), number, len(comparisons), array
        )
        assert failed == 0, (name, failed)
    with tempfile.TemporaryFile() as file:
        assert library.seccomp_export_bpf(context, file.fileno()) == 0
        library.seccomp_release(context)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return file.read()
