"""Builds the kernel's system call filter from the policy; `sandbox.kernel.confine` installs it.

The filter is classic BPF over `struct seccomp_data`: seccomp(2) and the kernel's
Documentation/userspace-api/seccomp_filter.rst. Since Linux 5.11 the kernel works out once which
calls a filter allows whatever their arguments, and runs no filter for these.
"""

import errno
import struct
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple

from sandbox.kernel.syscalls import TABLES

# linux/audit.h. A foreign token is killed: its numbers mean other calls than ours.
_TOKENS: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# x32 calls carry x86_64's token, and this bit in their number (asm/unistd.h).
_X32_BIT: Final = 0x40000000

# linux/bpf_common.h
_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_LONGEST_JUMP: Final = 255

# linux/seccomp.h: offsets in struct seccomp_data (low word first: both machines are
# little-endian), and verdicts.
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000
_ALLOW: Final = 0x7FFF0000

# Callers of these fall back on an older call if the kernel lacks them, not if it says EPERM. The
# flags of clone3 and openat2 lie in memory, where no filter sees them.
_ABSENT: Final = frozenset({"clone3", "fchmodat2", "openat2"})

_Code = tuple[tuple[int, int, int, int], ...]  # of struct sock_filter: code, jt, jf, k


def _return(verdict: int) -> _Code:
    return ((_RETURN, 0, 0, verdict),)


_ALLOWED: Final = _return(_ALLOW)
_REFUSED: Final = _return(_ERRNO | errno.EPERM)
_UNKNOWN: Final = _return(_ERRNO | errno.ENOSYS)
_KILLED: Final = _return(_KILL_PROCESS)


class Bits(NamedTuple):
    """Refuse when argument number `argument`, a 32-bit integer, has any bit of `mask`."""

    argument: int
    mask: int


class Unless(NamedTuple):
    """Refuse when argument number `argument` is none of `values`.

    The kernel takes the argument as a 32-bit integer and drops the upper half, and so does this;
    a `wide` one is a pointer or a long, whose upper half must be 0.
    """

    argument: int
    values: tuple[int, ...]
    wide: bool = False


class Above(NamedTuple):
    """Refuse when argument number `argument`, a 32-bit integer without sign, is above `value`."""

    argument: int
    value: int


_Test = Bits | Unless | Above

# open(2), asm-generic/fcntl.h: O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | __O_TMPFILE
_WRITING: Final = 0o3 | 0o100 | 0o1000 | 0o20000000

# What `name(condition)` in the policy refuses: the call, if any of the tests says so.
CONDITIONS: Final[Mapping[str, tuple[_Test, ...]]] = {
    # clock_gettime(2): allowed are the clocks 0 to 11, of the machine and of the caller. Others are
    # made of a process id or a descriptor, clock_getcpuclockid(3).
    "clock_getres(others)": (Above(0, 11),),
    "clock_gettime(others)": (Above(0, 11),),
    "clock_nanosleep(others)": (Above(0, 11),),
    # fcntl(2): allowed are F_DUPFD, F_GETFD, F_SETFD, F_GETFL and F_DUPFD_CLOEXEC. Not owners of
    # signals, leases, locks, pipe sizes, directory watches.
    "fcntl(unsafe)": (Unless(1, (0, 1, 2, 3, 1030)),),
    # futex(2): allowed are FUTEX_WAIT, WAKE, WAIT_BITSET and WAKE_BITSET on memory of the caller
    # (FUTEX_PRIVATE_FLAG), the waits also by FUTEX_CLOCK_REALTIME.
    "futex(shared)": (Unless(1, (128, 129, 137, 138, 384, 393)),),
    # ioctl(2), ioctl_tty(2): allowed are TCGETS, TCGETS2 (isatty), TIOCGWINSZ, FIONREAD,
    # FIONCLEX and FIOCLEX.
    "ioctl(unsafe)": (Unless(1, (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5450, 0x5451)),),
    # madvise(2): allowed are NORMAL, RANDOM, SEQUENTIAL, WILLNEED, DONTNEED, FREE, HUGEPAGE and
    # NOHUGEPAGE. Not merging with other processes' pages, swapping or poisoning.
    "madvise(unsafe)": (Unless(2, (0, 1, 2, 3, 4, 8, 14, 15)),),
    # mmap(2): an address of one's own choice. Scattered, each page would cost two of page tables,
    # which RLIMIT_AS does not count.
    "mmap(address)": (Unless(0, (0,), wide=True),),
    # mmap(2): MAP_SHARED (and with its bit MAP_SHARED_VALIDATE) and MAP_HUGETLB. RLIMIT_AS does not
    # count what shared memory holds after munmap(2).
    "mmap(shared)": (Bits(3, 0x1 | 0x40000),),
    # mremap(2): MREMAP_FIXED and MREMAP_DONTUNMAP, as mmap(address).
    "mremap(address)": (Bits(3, 0x2 | 0x4),),
    # open(2): flags that write, create or truncate.
    "open(write)": (Bits(1, _WRITING),),
    "openat(write)": (Bits(2, _WRITING),),
    # prctl(2): allowed are the questions PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_GET_NAME,
    # PR_GET_SECCOMP and PR_GET_NO_NEW_PRIVS.
    "prctl(unsafe)": (Unless(0, (2, 3, 16, 21, 39)),),
    # prlimit(2): pid 0 is the caller; a new_limit that is not NULL sets.
    "prlimit64(set)": (Unless(0, (0,)), Unless(2, (0,), wide=True)),
    # sched_setaffinity(2): pid 0 is the caller.
    "sched_getaffinity(others)": (Unless(0, (0,)),),
}


def build_filter(denied: Iterable[str], arch: str) -> bytes:
    """Return the filter as packed `struct sock_filter`, the same bytes for the same set.

    `denied` holds syscall names and CONDITIONS, no groups; `arch` is "x86_64" or "aarch64". Calls
    that only the other architecture has are passed over. Verdicts: foreign architecture or x32,
    the process is killed; denied, EPERM (ENOSYS for a few that callers probe for); a number that
    the table does not hold, ENOSYS; else allowed. Raises ValueError for an unknown name or
    architecture, and if the filter gets too long, for which these tables are too short.
    """
    if arch not in TABLES:
        raise ValueError(f"no system call table for {arch}; there are {', '.join(sorted(TABLES))}")
    code = _search(_ranges(_verdicts(frozenset(denied), TABLES[arch])))
    if arch == "x86_64":
        code = ((_JUMP_ANY_BIT, 0, 1, _X32_BIT), *_KILLED, *code)
    code = (
        (_LOAD, 0, 0, _ARCH_AT),
        (_JUMP_EQUAL, 1, 0, _TOKENS[arch]),
        *_KILLED,
        (_LOAD, 0, 0, _NUMBER_AT),
        *code,
    )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _verdicts(denied: frozenset[str], table: Mapping[str, int]) -> dict[int, _Code]:
    """Return for each number of the table the code that gives the verdict."""
    conditional: dict[str, list[_Test]] = {}
    for entry in sorted(denied):
        name = entry.partition("(")[0]
        if not any(name in known for known in TABLES.values()):
            raise ValueError(f"unknown system call: {entry}")
        if entry != name and entry not in CONDITIONS:
            raise ValueError(f"unknown condition: {entry}; there are {', '.join(CONDITIONS)}")
        conditional.setdefault(name, []).extend(CONDITIONS.get(entry, ()))
    codes = {}
    for name, number in table.items():
        if name in denied:
            codes[number] = _UNKNOWN if name in _ABSENT else _REFUSED
        else:
            codes[number] = _tests(conditional.get(name, []))
    return codes


def _tests(tests: list[_Test]) -> _Code:
    """Return code that refuses if any test says so, and allows otherwise."""
    if not tests:
        return _ALLOWED
    code = (*_ALLOWED, *_REFUSED)
    for test in reversed(tests):
        refuse = len(code) - 1  # how far the refusal is from the last instruction of this test
        low = _ARGUMENTS_AT + 8 * test.argument
        if isinstance(test, Bits):
            code = ((_LOAD, 0, 0, low), (_JUMP_ANY_BIT, refuse, 0, test.mask), *code)
            continue
        if isinstance(test, Above):
            code = ((_LOAD, 0, 0, low), (_JUMP_AT_LEAST, refuse, 0, test.value + 1), *code)
            continue
        code = ((_JUMP_EQUAL, 0, refuse, test.values[0]), *code)
        for skipped, value in enumerate(test.values[1:], 1):
            code = ((_JUMP_EQUAL, skipped, 0, value), *code)
        code = ((_LOAD, 0, 0, low), *code)
        if test.wide:
            code = ((_LOAD, 0, 0, low + 4), (_JUMP_EQUAL, 0, len(code) - 1, 0), *code)
    return code


def _ranges(codes: Mapping[int, _Code]) -> list[tuple[int, _Code]]:
    """Return (first number, code) in order, up to the one range without end."""
    numbers = range(max(codes) + 2)
    runs = groupby(numbers, key=lambda number: codes.get(number, _UNKNOWN))
    return [(next(run), code) for code, run in runs]


def _search(ranges: list[tuple[int, _Code]]) -> _Code:
    """Return code that finds the number's range by halves; verdicts that are near are shared.

    The kernel compiles it for each guest, so that its length counts. It is made from its end, as
    jumps go forwards only: `code` holds it reversed.
    """
    code: list[tuple[int, int, int, int]] = []
    placed: dict[_Code, int] = {}

    def verdict(instructions: _Code) -> int:
        if len(code) - placed.get(instructions, -_LONGEST_JUMP) > _LONGEST_JUMP // 2:
            code.extend(reversed(instructions))
            placed[instructions] = len(code) - 1
        return placed[instructions]

    def distance(place: int) -> int:
        return len(code) - place - 1

    def search(ranges: list[tuple[int, _Code]]) -> int:
        if len(ranges) == 1:
            return verdict(ranges[0][1])
        middle = len(ranges) // 2
        above, below = search(ranges[middle:]), search(ranges[:middle])
        if distance(above) > _LONGEST_JUMP:
            raise ValueError("the system call filter is too long: deny fewer separate calls")
        code.append((_JUMP_AT_LEAST, distance(above), distance(below), ranges[middle][0]))
        return len(code) - 1

    search(ranges)
    return tuple(reversed(code))
